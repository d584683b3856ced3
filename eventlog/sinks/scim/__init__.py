"""SCIM 2.0: users and groups as a provisioning server takes them."""
