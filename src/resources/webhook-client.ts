/** Where a webhook is: at a URL, or behind a Service. */
import { goQuote } from '#lib/go-text.ts'
import { child, type FieldError, invalid, required } from '#meta/validation/field-error.ts'
import { dns1123Subdomain, portNumber } from '#meta/validation/names.ts'

interface WebhookService {
  readonly namespace?: string
  readonly name?: string
  readonly path?: string
  readonly port?: number
}

interface WebhookClient {
  readonly url?: string
  readonly service?: WebhookService
}

export const DEFAULT_WEBHOOK_PORT = 443

export function validateWebhookClient(path: string, { url, service }: WebhookClient): FieldError[] {
  if (url !== undefined && service === undefined) return validateWebhookUrl(child(path, 'url'), url)
  if (service !== undefined && url === undefined) return validateWebhookService(child(path, 'service'), service)
  return [required(path, 'exactly one of url or service is required')]
}

const FORM = '; desired format: https://host[/path]'

function validateWebhookUrl(field: string, text: string): FieldError[] {
  const url = splitUrl(text)
  if (typeof url === 'string')
    return [required(field, `url must be a valid URL: parse ${goQuote(text)}: ${url}${FORM}`)]
  const { scheme, host, user, query, fragment } = url
  return [
    ...(scheme === 'https' ? [] : [invalid(field, scheme, `'https' is the only allowed URL scheme${FORM}`)]),
    ...(host === '' ? [invalid(field, host, `host must be specified${FORM}`)] : []),
    ...(user === undefined ? [] : [invalid(field, user, 'user information is not permitted in the URL')]),
    ...(fragment === '' ? [] : [invalid(field, fragment, 'fragments are not permitted in the URL')]),
    ...(query === '' ? [] : [invalid(field, query, 'query parameters are not permitted in the URL')]),
  ]
}

interface SplitUrl {
  readonly scheme: string
  readonly user: string | undefined
  readonly host: string
  readonly query: string
  readonly fragment: string
}

const URL_PARTS =
  /^(?:(?<scheme>[a-z][a-z0-9+.-]*):)?(?:\/\/(?<authority>[^/?#]*))?(?<path>[^?#]*)(?:\?(?<query>[^#]*))?(?:#(?<fragment>.*))?$/is

/** The parts of a URL, or what Go's url.Parse would say is wrong with it. */
function splitUrl(text: string): SplitUrl | string {
  const parts = URL_PARTS.exec(text)?.groups ?? {}
  const part = (name: string): string => parts[name] ?? ''
  const authority = part('authority')
  const at = authority.lastIndexOf('@')
  const host = authority.slice(at + 1)
  const bare = part('scheme') === '' && parts['authority'] === undefined ? part('path') : ''
  const complaint = textComplaint(text) ?? pathComplaint(bare, authority + part('path')) ?? hostComplaint(host)
  if (complaint !== undefined) return complaint
  return {
    scheme: part('scheme').toLowerCase(),
    user: at < 0 ? undefined : authority.slice(0, at),
    host,
    query: part('query'),
    fragment: part('fragment'),
  }
}

function textComplaint(text: string): string | undefined {
  if (/\p{Cc}/u.test(text.replaceAll(/[\x80-\x9f]/g, ''))) return 'net/url: invalid control character in URL'
  return text.startsWith(':') ? 'missing protocol scheme' : undefined
}

/** `bare`: the path of a URL that has nothing before it, in which a colon would end a scheme; else empty. */
function pathComplaint(bare: string, escaped: string): string | undefined {
  if (/^[^/]*:/.test(bare)) return 'first path segment in URL cannot contain colon'
  const bad = /%(?![0-9a-f]{2}).{0,2}/i.exec(escaped)
  return bad === null ? undefined : `invalid URL escape ${goQuote(bad[0])}`
}

function hostComplaint(host: string): string | undefined {
  if (host.startsWith('[') && !host.includes(']')) return "missing ']' in host"
  const port = host.slice(host.lastIndexOf(']') + 1).replace(/^[^:]*/, '')
  if (!/^(?::\d*)?$/.test(port)) return `invalid port ${goQuote(port)} after host`
  const odd = /[ <>"^`{}|\\]/.exec(host)
  return odd === null ? undefined : `invalid character ${goQuote(odd[0])} in host name`
}

/** Upstream hands name and namespace over in the wrong order: a missing one is reported as the other. */
function validateWebhookService(path: string, service: WebhookService): FieldError[] {
  const { namespace = '', name = '', port = 0 } = service
  const complaints = portNumber(port)
  return [
    ...(namespace === '' ? [required(child(path, 'name'))] : []),
    ...(name === '' ? [required(child(path, 'namespace'))] : []),
    ...(complaints.length > 0
      ? [invalid(child(path, 'port'), port, `port is not valid: ${complaints.join(', ')}`)]
      : []),
    ...validateServicePath(child(path, 'path'), service.path ?? ''),
  ]
}

function validateServicePath(field: string, path: string): FieldError[] {
  if (path === '' || path === '/') return []
  if (path === '//') return [invalid(field, path, 'segment[0] may not be empty')]
  const errors = path.startsWith('/') ? [] : [invalid(field, path, "must start with a '/'")]
  const steps = path.slice(1).replace(/\/$/, '').split('/')
  return [
    ...errors,
    ...steps.flatMap((step, at) => {
      if (step === '') return [invalid(field, path, `segment[${at}] may not be empty`)]
      return dns1123Subdomain(step).map((complaint) => invalid(field, path, `segment[${at}]: ${complaint}`))
    }),
  ]
}
