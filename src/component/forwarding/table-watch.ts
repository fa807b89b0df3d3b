/**
 * The parameter `hk-as=Table` of requests for a WebSocket: the server sends Tables without managed fields. Pages of a browser cannot set the
 * header `Accept` of a WebSocket.
 */
import type { Exchange } from '#lib/http/exchange.ts'

const PARAMETER = /[?&]hk-as=Table(?=&|$)/
const TABLE_ACCEPT = 'application/json;as=Table;v=v1;g=meta.k8s.io;omit=managedFields,application/json'

export interface TableWatch {
  /** Without the parameter. */
  readonly path: string
  readonly headers: { readonly accept?: string }
}

export function tableWatch({ upgradeProtocol }: Pick<Exchange, 'upgradeProtocol'>, path: string): TableWatch {
  if (upgradeProtocol !== 'websocket' || !PARAMETER.test(path)) return { path, headers: {} }
  const rest = path.replace(PARAMETER, '')
  // The parameter may have been the first one.
  return { path: rest.includes('?') ? rest : rest.replace('&', '?'), headers: { accept: TABLE_ACCEPT } }
}
