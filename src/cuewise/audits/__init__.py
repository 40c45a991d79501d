"""One question a file: what does this model rely on?"""
