"""Return whether operators are being traced: False."""

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """Return None: operators are not traced with proxies of tensors.

    Example:
        >>> get_proxy_mode() is None
        True
    """
    return
