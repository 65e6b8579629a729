"""The studio: pages on which people review a run, in the browser and offline.

room    what the pages look at and act on: desk, search, suggestions; no web in it
views   plain values for every page, made from a room
api     the same over HTTP, one call per action
guard   who may come in, from where, and how much they may send
page/   the pages themselves, shown by NiceGUI
"""
