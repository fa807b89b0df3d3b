/** Validates the location of a webhook: a URL or a Service. */
import { goQuote } from '#lib/go/text.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
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

export function validateWebhookClient(path: FieldPath, { url, service }: WebhookClient): FieldError[] {
  if (url !== undefined && service === undefined) return validateWebhookUrl(path.child('url'), url)
  if (service !== undefined && url === undefined) return validateWebhookService(path.child('service'), service)
  return [path.required('exactly one of url or service is required')]
}

const FORM = '; desired format: https://host[/path]'

function validateWebhookUrl(path: FieldPath, text: string): FieldError[] {
  const url = splitUrl(text)
  if (typeof url === 'string') return [path.required(`url must be a valid URL: parse ${goQuote(text)}: ${url}${FORM}`)]
  const { scheme, host, user, query, fragment } = url
  return collectErrors(
    scheme !== 'https' && path.invalid(scheme, `'https' is the only allowed URL scheme${FORM}`),
    host === '' && path.invalid(host, `host must be specified${FORM}`),
    user !== undefined && path.invalid(user, 'user information is not permitted in the URL'),
    fragment !== '' && path.invalid(fragment, 'fragments are not permitted in the URL'),
    query !== '' && path.invalid(query, 'query parameters are not permitted in the URL'),
  )
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

/** The parts of a URL, or the error of Go's url.Parse. */
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

/** `bare`: the path of a URL without a scheme, in which a colon would end a scheme; otherwise empty. */
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

/** Upstream swaps name and namespace: a missing one is reported as the other. */
function validateWebhookService(path: FieldPath, service: WebhookService): FieldError[] {
  const { namespace = '', name = '', port = 0 } = service
  const complaints = portNumber(port)
  return collectErrors(
    namespace === '' && path.child('name').required(),
    name === '' && path.child('namespace').required(),
    complaints.length > 0 && path.child('port').invalid(port, `port is not valid: ${complaints.join(', ')}`),
    validateServicePath(path.child('path'), service.path ?? ''),
  )
}

function validateServicePath(field: FieldPath, path: string): FieldError[] {
  if (path === '' || path === '/') return []
  if (path === '//') return [field.invalid(path, 'segment[0] may not be empty')]
  const errors = path.startsWith('/') ? [] : [field.invalid(path, "must start with a '/'")]
  const steps = path.slice(1).replace(/\/$/, '').split('/')
  return [
    ...errors,
    ...steps.flatMap((step, at) => {
      if (step === '') return [field.invalid(path, `segment[${at}] may not be empty`)]
      return dns1123Subdomain(step).map((complaint) => field.invalid(path, `segment[${at}]: ${complaint}`))
    }),
  ]
}
