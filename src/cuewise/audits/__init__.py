"""One question a file: what does this model rely on?"""

LIMIT = 200  # images of which changed copies are made, unless --limit says otherwise
