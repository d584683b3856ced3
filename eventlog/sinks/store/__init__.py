"""Object stores as places of documents, change tables, conversions and archives: S3, Google Cloud
Storage and Azure.
"""
