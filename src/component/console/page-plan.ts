/** Decides the response to a request for the page of the web console. Pure: the list of files is an argument. */
import type { IncomingHttpHeaders } from 'node:http'

import { segmentsOf } from '../forwarding/request-path.ts'
import { chooseEncoding, type Encoding } from './accept-encoding.ts'
import type { PageFile, PageFiles } from './page-files.ts'

export interface PageRequest {
  readonly method: string
  /** The request target: path and query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

export type PagePlan =
  | { readonly send: 'redirect'; readonly to: string }
  | { readonly send: 'file'; readonly file: PageFile; readonly encoding: Encoding; readonly isImmutable: boolean }
  | { readonly send: 'index'; readonly encoding: Encoding }
  | { readonly send: 'unchanged' }
  | { readonly send: 'not-built' }
  | { readonly send: 'refusal'; readonly status: 400 | 404 | 405 }

/** The page, below which the browser decides. */
export const PAGE_PATH = '/ui/'
const ASSETS = 'assets/'

/** An undefined list of files: the page has not been built. */
export function planPage({ method, path: target, headers }: PageRequest, files: PageFiles | undefined): PagePlan {
  const [path = ''] = target.split('?')
  if ('refused' in segmentsOf(path)) return { send: 'refusal', status: 400 }
  const isPage = path.startsWith(PAGE_PATH)
  if (!isPage && path !== '/' && path !== '/ui') return { send: 'refusal', status: 404 }
  if (method !== 'GET' && method !== 'HEAD') return { send: 'refusal', status: 405 }
  if (!isPage) return { send: 'redirect', to: PAGE_PATH }
  if (files === undefined) return { send: 'not-built' }
  const name = path.slice(PAGE_PATH.length)
  const file = files.files.get(name)
  const accepted = headers['accept-encoding']
  const isImmutable = name.startsWith(ASSETS)
  if (file !== undefined) return { send: 'file', file, encoding: chooseEncoding(accepted, file.encodings), isImmutable }
  if (isImmutable) return { send: 'refusal', status: 404 }
  if (matches(headers['if-none-match'], files.indexTag)) return { send: 'unchanged' }
  return { send: 'index', encoding: chooseEncoding(accepted, ANY) }
}

const ANY: ReadonlySet<Encoding> = new Set(['br', 'gzip'])

/** The tag is weak: each response has another nonce, and encodings differ. */
export function weakTag(tag: string): string {
  return `W/"${tag}"`
}

function matches(header: string | undefined, tag: string): boolean {
  return (header ?? '').split(',').some((one) => one.trim() === weakTag(tag) || one.trim() === `"${tag}"`)
}
