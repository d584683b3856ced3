"""A login by OAuth 2: where a token is fetched, and with which credentials."""

from __future__ import annotations

from eventlog.core.errors import ConfigError
from eventlog.sinks.http.address import HttpSettings


class OauthSettings(HttpSettings, frozen=True, kw_only=True):
    """An address with a login by client credentials: where `oauth_url` is set, a token is fetched there."""

    oauth_url: str = ""
    oauth_client_id: str = ""
    oauth_client_secret: str = ""
    oauth_scope: str = ""

    def __post_init__(self) -> None:
        """Refuse half a login, and two of them."""
        HttpSettings.__post_init__(self)
        if bool(self.oauth_url) != bool(self.oauth_client_id and self.oauth_client_secret):
            names = "output.oauth_url, output.oauth_client_id and output.oauth_client_secret"
            raise ConfigError(f"{names} belong together; one of them is missing.")
        if self.oauth_url and self.authorization is not None:
            raise ConfigError("output.authorization and output.oauth_url are two logins; choose one.")
        if self.oauth_url:
            self.token_endpoint()  # which refuses a wrong address

    @property
    def _addresses(self) -> tuple[str, ...]:
        return self.url, self.oauth_url

    def token_endpoint(self) -> HttpSettings:
        """Return settings of the token endpoint, with the receiver's trust and timeouts."""
        # Of two addresses the receiver's alone may have TLS.
        has_tls = self.oauth_url.lower().startswith("https:")
        try:
            return HttpSettings(
                url=self.oauth_url,
                connect_timeout=self.connect_timeout,
                read_timeout=self.read_timeout,
                total_timeout=self.total_timeout,
                verify=self.verify,
                ca_file=self.ca_file if has_tls else None,
                client_certificate=self.client_certificate if has_tls else None,
                client_key=self.client_key if has_tls else None,
                proxy=self.proxy,
            )
        except ConfigError as error:
            problem = "output.oauth_url is no address of a server"
            raise ConfigError(f"{problem}; it is http://… or https://….") from error
