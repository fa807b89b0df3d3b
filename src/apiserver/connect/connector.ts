/**
 * Connectors: subresources that proxy a request to a kubelet, such as `pods/log` and `pods/exec`, or to a port of a
 * pod, service or node. Follows upstream's pkg/registry/core, v1.36.
 */
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

import type { Connectors, Handler } from '../dispatch.ts'
import type { Network } from './address-rule.ts'
import { createBackends } from './backends.ts'
import type { ConnectContext } from './context.ts'
import { createLogHandler } from './log.ts'
import { createConnectMetrics } from './metrics.ts'
import { createProxyHandler, NODE_PROXY, POD_PROXY, SERVICE_PROXY } from './proxy.ts'
import { ATTACH, createStreamHandler, EXEC, PORT_FORWARD } from './streams.ts'

export interface ConnectOptions extends Omit<ConnectContext, 'backends' | 'count'> {
  /** The machine's resolver by default. */
  readonly network?: Network
  /** Where connections are counted. */
  readonly metrics?: ServerMeters
}

const UPGRADE_VERBS = ['get', 'create'] as const
/** OPTIONS has no API verb. */
const PROXY_VERBS = ['get', 'create', 'update', 'patch', 'delete', ''] as const

export interface ConnectSubresources {
  readonly connectors: Connectors
  /** Closes all backend connections. */
  close(): void
}

export function createConnectSubresources(options: ConnectOptions): ConnectSubresources {
  const backends = createBackends(options)
  const context: ConnectContext = {
    ...options,
    backends,
    count: createConnectMetrics(options.metrics ?? createServerMeters()),
  }
  const connectors = {
    'pods/log': { get: createLogHandler(context) },
    'pods/exec': verbs(UPGRADE_VERBS, createStreamHandler(context, EXEC)),
    'pods/attach': verbs(UPGRADE_VERBS, createStreamHandler(context, ATTACH)),
    'pods/portforward': verbs(UPGRADE_VERBS, createStreamHandler(context, PORT_FORWARD)),
    'pods/proxy': verbs(PROXY_VERBS, createProxyHandler(context, POD_PROXY)),
    'services/proxy': verbs(PROXY_VERBS, createProxyHandler(context, SERVICE_PROXY)),
    'nodes/proxy': verbs(PROXY_VERBS, createProxyHandler(context, NODE_PROXY)),
  }
  return { connectors, close: () => backends.close() }
}

function verbs(names: readonly string[], handler: Handler): Readonly<Record<string, Handler>> {
  return Object.fromEntries(names.map((name) => [name, handler]))
}
