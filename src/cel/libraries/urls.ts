/** Absolute URLs, read as Go's net/url reads them. */
import { defineLibrary, free, member, type Library } from '../library.ts'
import { BOOL, STRING, listOf, mapOf, opaque } from '../type.ts'

const URL_TYPE = opaque('kubernetes.URL')

export const urls: Library = defineLibrary('kubernetes.urls', {
  url: [free('string_to_url', [STRING], URL_TYPE)],
  getScheme: [member('url_get_scheme', [URL_TYPE], STRING)],
  getHost: [member('url_get_host', [URL_TYPE], STRING)],
  getHostname: [member('url_get_hostname', [URL_TYPE], STRING)],
  getPort: [member('url_get_port', [URL_TYPE], STRING)],
  getEscapedPath: [member('url_get_escaped_path', [URL_TYPE], STRING)],
  getQuery: [member('url_get_query', [URL_TYPE], mapOf(STRING, listOf(STRING)))],
  isURL: [free('is_url_string', [STRING], BOOL)],
})
