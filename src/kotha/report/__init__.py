"""The studio: a page to write with models, look inside and train them; built ahead from ``web/``, in two languages."""
