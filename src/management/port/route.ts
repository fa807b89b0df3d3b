/** The type of an HTTP route of the management server: method, path, permitted callers and handler. */
import type { Exchange, HeaderList } from '#lib/http/exchange.ts'

import type { Person } from '../person.ts'

/**
 * `anyone`: without credentials. `person`: a user who is logged in; with a cookie the request must come from our pages.
 * `agent`: the route checks the credentials of agents.
 */
export type RouteAccess = 'anyone' | 'person' | 'agent'

export interface Route {
  /** `*`: every method. */
  readonly method: string
  /** `/v3/tokens/:name`, or `/k8s/clusters/:cluster/*` with everything below. */
  readonly path: string
  readonly access: RouteAccess
  /** A person who must change the password first may use the route too. */
  readonly allowsInitialPassword?: boolean
  /** A token for one cluster may use the route, but with no other cluster as the parameter `cluster`. */
  readonly allowsClusterToken?: boolean
  serve(call: RouteCall): Promise<Reply> | Reply
}

export interface RouteCall {
  readonly exchange: Exchange
  /** Decoded segments by the names of the path. */
  readonly params: Readonly<Record<string, string>>
  /** Path and query behind the fixed part of a path that ends with `*`, as they came. */
  readonly rest: string
  readonly query: URLSearchParams
  /** Only for routes with access `person`. */
  readonly person: Person | undefined
  /** The IP address of the client, behind trusted proxies too. */
  readonly address: string
  /** For the audit log. */
  readonly auditId: string
  /** The JSON object of the body, of at most 64 KiB or `maxBytes`. Throws StatusError for anything else. */
  readBody(maxBytes?: number): Promise<Readonly<Record<string, unknown>>>
}

/** An answer. `served`: the route has answered the exchange itself, with this status. StatusErrors become a Status. */
export type Reply =
  | {
      readonly served: number
      /** For the audit log: the user whom the request claimed to be, allowed by the cluster. */
      readonly impersonated?: string
    }
  | {
      readonly status: number
      readonly headers?: HeaderList
      /** An object is sent as JSON, a string unchanged. */
      readonly body?: object | string
    }
