/** Sends requests to the server of this page, with its protection against other sites, and reads errors as Status. */

/** The part of a Kubernetes Status that the console shows. */
export interface Status {
  readonly code?: number
  readonly reason?: string
  readonly message?: string
  readonly details?: {
    readonly retryAfterSeconds?: number
    readonly causes?: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[]
  }
}

/** The server refused a request, or it cannot be reached (`code` 0). */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: number
  readonly status: Status

  constructor(status: Status, options?: ErrorOptions) {
    super(status.message ?? `The server answered ${status.code ?? 0}`, options)
    this.code = status.code ?? 0
    this.status = status
  }
}

export interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** An object is sent as JSON. */
  readonly body?: object | string
  /** Of the body. Default: JSON. */
  readonly type?: string
  readonly accept?: string
  readonly signal?: AbortSignal | undefined
}

/** For lists of names and labels, without the contents of the objects. */
export const METADATA_ACCEPT =
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io;omit=managedFields,application/json'

/** Gets the event `unauthorized` when the server no longer accepts the session. */
export const sessionEvents: EventTarget = new EventTarget()

export type Fetch = (path: string, init: RequestInit) => Promise<Response>

/** Resolves with a response of status 2xx. Rejects with RequestError. */
export async function send(path: string, options: RequestOptions = {}, fetcher: Fetch = fetch): Promise<Response> {
  const { method = 'GET', body, type = 'application/json', accept = 'application/json', signal } = options
  const init: RequestInit = {
    method,
    headers: { accept, 'x-hk': '1', ...(body !== undefined && { 'content-type': type }) },
    credentials: 'same-origin',
    redirect: 'error',
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  }
  let response: Response
  try {
    response = await fetcher(compact(path), init)
  } catch (cause) {
    if (signal?.aborted === true) throw cause
    throw new RequestError({ code: 0, message: 'The server cannot be reached' }, { cause })
  }
  if (response.ok) return response
  if (response.status === 401) reportUnauthorized()
  throw new RequestError(await statusOf(response))
}

/** API servers indent JSON for browsers, which makes it slower and larger, unless the request says otherwise. */
function compact(path: string): string {
  return path.startsWith(CLUSTERS) ? `${path}${path.includes('?') ? '&' : '?'}pretty=false` : path
}

/** The JSON of a response. */
export async function sendForJson<T>(path: string, options?: RequestOptions): Promise<T> {
  const response = await send(path, options)
  return (await response.json()) as T
}

export function reportUnauthorized(): void {
  sessionEvents.dispatchEvent(new Event('unauthorized'))
}

const CLUSTERS = '/k8s/clusters/'
const MAX_MESSAGE = 2000

async function statusOf(response: Response): Promise<Status> {
  const text = await response.text().catch(() => '')
  try {
    const status = JSON.parse(text) as Status
    if (typeof status.message === 'string') return { ...status, code: response.status }
  } catch {
    // Not every server answers with a Status.
  }
  const message = text.trim() === '' ? response.statusText : text.trim().slice(0, MAX_MESSAGE)
  return { code: response.status, message }
}
