/**
 * `metrics-server`: serves metrics.k8s.io behind the API server, with metrics-server's flags. It queries kubelets on
 * request and caches the answers, so instances need no coordination.
 */
import { ConfigMaps, type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { createDispatch } from '#apiserver/dispatch.ts'
import { admitAll } from '#apiserver/registry/admission.ts'
import { ByteMemo } from '#apiserver/registry/byte-memo.ts'
import { Registry } from '#apiserver/registry/registry.ts'
import { Representation } from '#apiserver/registry/representation.ts'
import { BUILT_IN } from '#apiserver/registry/shapes.ts'
import { createDiscovery } from '#apiserver/routes/discovery.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informers } from '#client/informers.ts'
import { startComponentServer } from '#component/component-server.ts'
import {
  DELEGATED_AUTHENTICATION_FLAGS,
  DELEGATED_AUTHORIZATION_FLAGS,
  type DelegationValues,
} from '#component/flags/delegation-flags.ts'
import { SERVING_FLAGS, type ServingValues } from '#component/flags/serving-flags.ts'
import { reviewing } from '#component/reviews.ts'
import { aborted } from '#lib/abort.ts'
import { flag, type FlagGroups } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { parseJson } from '#lib/json/json.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import type { KubeObject } from '#meta/object.ts'
import { createServerMeters } from '#model/metrics/families.ts'
import { kubernetesVersion } from '#model/version.ts'
import { defineUsage, type StatsSummary, type UsageSource } from '#resources/metrics/usage.ts'
import { createAtRest } from '#storage/encryption/at-rest.ts'
import { NO_ENCRYPTION } from '#storage/encryption/config.ts'
import { createMemoryBackend } from '#storage/memory.ts'
import { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import { openNodeClient } from './node-client.ts'

const NAME = 'metrics-server'
const GROUP = 'metrics.k8s.io'

const FLAGS: FlagGroups = {
  metrics: {
    kubeconfig: flag(string, '', 'kubeconfig `file` (default: the service account of the pod)'),
    'kubelet-insecure-tls': flag(bool, false, 'skip verification of kubelet certificates'),
    'kubelet-certificate-authority': flag(string, '', '`file` with the certificate authority of kubelets'),
    'kubelet-port': flag(int, 10_250, 'kubelet port if the node status has none'),
    'kubelet-preferred-address-types': flag(
      strings,
      ['Hostname', 'InternalDNS', 'InternalIP', 'ExternalDNS', 'ExternalIP'],
      'preferred address types of nodes; the first that a node has is used',
    ),
    'kubelet-request-timeout': flag(duration, 10_000, 'time limit of a request to a kubelet'),
    'kubelet-use-node-status-port': flag(bool, false, 'use the kubelet port in the node status'),
    'metric-resolution': flag(duration, 60_000, 'has no effect: kubelets are queried on request, at most every 15 s'),
  },
  serving: {
    ...SERVING_FLAGS,
    'secure-port': flag(int, 443, 'HTTPS port'),
    'cert-dir': flag(string, '', 'accepted without effect: every start creates a certificate unless one is given'),
  },
  authentication: DELEGATED_AUTHENTICATION_FLAGS,
  authorization: DELEGATED_AUTHORIZATION_FLAGS,
  logs: LOG_FLAGS,
}

interface MetricsSettings extends ServingValues, DelegationValues {
  readonly kubeconfig: string
  readonly 'kubelet-insecure-tls': boolean
  readonly 'kubelet-certificate-authority': string
  readonly 'kubelet-port': number
  readonly 'kubelet-preferred-address-types': readonly string[]
  readonly 'kubelet-request-timeout': number
  readonly 'kubelet-use-node-status-port': boolean
}

/** The table of flags defines every setting with its type. */
type MetricsInvocation = Omit<Invocation<FlagGroups>, 'flags'> & { readonly flags: MetricsSettings }

export const metricsServer: Program = defineProgram({
  name: NAME,
  long: 'metrics-server serves resource usage of nodes and pods for "kubectl top" and autoscalers. It runs behind the API server.',
  version: kubernetesVersion(),
  flags: FLAGS,
  run: runMetricsServer,
})

async function runMetricsServer(given: Invocation<FlagGroups>, signal: AbortSignal): Promise<number> {
  const invocation = given as unknown as MetricsInvocation
  const { flags, log } = invocation
  await using closing = new AsyncDisposableStack()
  const client = await openNodeClient(invocation, closing, {
    name: NAME,
    where: { kubeconfig: flags.kubeconfig, master: '' },
  })
  const front = await frontProxy(client)
  const { source, isSynced } = await openSource(invocation, client, closing)
  const registry = openRegistry(invocation, source, closing)
  const status = { group: '', version: 'v1', kind: 'Status' }
  const memos = new ByteMemo(1 << 20)
  const encoder = new Representation({ kind: status as Kind, stored: status, shapes: BUILT_IN, memos })
  const port = await startComponentServer({
    ...invocation,
    name: NAME,
    settings: { ...flags, ...front.settings, 'cert-dir': '', profiling: false },
    tokenReviews: reviewing(client, 'authentication', 'tokenreviews'),
    accessReviews: reviewing(client, 'authorization', 'subjectaccessreviews'),
    ...front.authorities,
    metrics: createServerMeters(),
    isEnabled: () => false,
    flags: new Map(),
    checks: () => [
      {
        name: 'informer-sync',
        on: ['readyz'],
        check() {
          if (!isSynced()) throw new Error('nodes and pods are not synced yet')
        },
      },
    ],
    closing,
    api: {
      dispatch: createDispatch(registry, {}),
      knowsGroup: (group) => group === GROUP,
      routes: createDiscovery({
        groups: () => registry.groups(),
        schemaFor: (gvk) => registry.schemaFor(gvk),
        encoder,
        hasStorageVersionHashes: false,
        serverAddress: '',
      }),
    },
  })
  log.info('Serving securely', { ...port })
  await aborted(signal)
  return 0
}

/** Nothing is stored: every request computes its answer. */
function openRegistry(
  { clock, random }: MetricsInvocation,
  source: UsageSource,
  closing: AsyncDisposableStack,
): Registry {
  const backend = createMemoryBackend({ clock, random })
  const cache = new WatchCache({ backend, clock, prefix: '/registry/' })
  closing.defer(async () => {
    await cache.close()
    await backend.close()
  })
  const registry = new Registry({
    backend,
    cache,
    clock,
    random,
    admission: () => admitAll,
    isEnabled: () => false,
    allowPrivileged: false,
    atRest: createAtRest(NO_ENCRYPTION, random),
  })
  closing.defer(() => registry.services.yaml.close())
  for (const kind of defineUsage(source)) registry.addVirtual(kind)
  return registry
}

interface Front {
  readonly settings: Partial<Record<string, readonly string[]>>
  readonly authorities: { readonly clientAuthorities?: string; readonly proxyAuthorities?: string }
}

/** The authority of the API server's proxy certificate, from a ConfigMap. Throws ProgramError. */
async function frontProxy(client: ApiClient): Promise<Front> {
  const where = { namespace: 'kube-system', name: 'extension-apiserver-authentication' }
  const { data = {} } = await client.get(ConfigMaps, where).catch((cause: unknown) => {
    throw new ProgramError(
      `unable to load configmap based request-header-client-ca-file: ${(cause as Error).message}`,
      { cause },
    )
  })
  const names = ['allowed-names', 'username-headers', 'uid-headers', 'group-headers', 'extra-headers-prefix']
  const settings = names.flatMap((name): [string, readonly string[]][] => {
    const text = data[`requestheader-${name}`]
    return text === undefined ? [] : [[`requestheader-${name}`, JSON.parse(text) as string[]]]
  })
  const { 'client-ca-file': clients, 'requestheader-client-ca-file': proxies } = data
  return {
    settings: Object.fromEntries(settings),
    authorities: {
      ...(clients !== undefined && { clientAuthorities: clients }),
      ...(proxies !== undefined && { proxyAuthorities: proxies }),
    },
  }
}

async function openSource(
  invocation: MetricsInvocation,
  client: ApiClient,
  closing: AsyncDisposableStack,
): Promise<{ source: UsageSource; isSynced: () => boolean }> {
  const { random, log, clock } = invocation
  const stop = new AbortController()
  closing.defer(() => stop.abort())
  const informers = new Informers({
    client,
    random,
    signal: stop.signal,
    tailor: () => ({ transform: slim }),
    onError: (error, kind) => log.error(error, 'Failed to watch nodes and pods', { kind: kind.kind }),
  })
  const nodes = informers.of<Node>(Nodes)
  const pods = informers.of<Pod>(Pods)
  const kubelets = await openKubelets(invocation)
  closing.defer(() => kubelets.close())
  const ask = summaryOf(invocation, kubelets, (name) => nodes.get(name))
  const objects = {
    get: async <T extends KubeObject>(kind: Kind<T>, namespace: string, name: string): Promise<T | undefined> =>
      informers.of(kind).get(namespace === '' ? name : `${namespace}/${name}`),
    list: async <T extends KubeObject>(kind: Kind<T>, namespace: string): Promise<readonly T[]> =>
      [...informers.of(kind).list()]
        .filter(({ metadata }) => namespace === '' || metadata.namespace === namespace)
        .toSorted(byNamespaceAndName),
  }
  return { source: { objects, clock, summaryOf: ask }, isSynced: () => nodes.isSynced && pods.isSynced }
}

function byNamespaceAndName(one: KubeObject, other: KubeObject): number {
  const text = ({ metadata: { namespace = '', name = '' } }: KubeObject): string => `${namespace}/${name}`
  return text(one) < text(other) ? -1 : 1
}

/** Only the fields that answers need, because there are many pods. */
function slim(object: KubeObject): KubeObject {
  const { name, namespace, uid, labels, resourceVersion } = object.metadata
  const { spec, status } = object as Partial<Pod & Node>
  const kept = { name, namespace, uid, labels, resourceVersion } as KubeObject['metadata']
  const { phase, addresses, daemonEndpoints } = (status ?? {}) as Partial<Pod['status'] & Node['status']>
  return {
    metadata: kept,
    spec: { nodeName: spec?.nodeName },
    status: { phase, addresses, daemonEndpoints },
  } as KubeObject
}

async function openKubelets({ flags, clock, readFile }: MetricsInvocation): Promise<HttpClient> {
  const file = flags['kubelet-certificate-authority']
  const ca = file === '' ? {} : { ca: await readFile(file) }
  return createHttpClient({ clock, tls: { insecure: flags['kubelet-insecure-tls'], ...ca } })
}

const TOKEN_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/token'
const MAX_SUMMARY_BYTES = 64 << 20
const PATH = '/stats/summary?only_cpu_and_memory=true'

/** Requests go directly to the kubelet with the pod's service account. */
function summaryOf(
  { flags, readFile, log }: MetricsInvocation,
  kubelets: HttpClient,
  nodeNamed: (name: string) => Node | undefined,
): UsageSource['summaryOf'] {
  return async (name, signal) => {
    const url = kubeletUrl(nodeNamed(name), flags)
    if (url === undefined) return undefined
    try {
      const token = await readFile(TOKEN_FILE).catch(() => '')
      const headers = { accept: 'application/json', ...(token !== '' && { authorization: `Bearer ${token.trim()}` }) }
      const timeoutMs = flags['kubelet-request-timeout']
      const response = await kubelets.request({ url, path: PATH, headers, signal, timeoutMs })
      const bytes = await response.bytes(MAX_SUMMARY_BYTES)
      if (response.status === 200) return parseJson(bytes) as unknown as StatsSummary
      throw new Error(`request failed, status: "${response.status}"`)
    } catch (error) {
      if (!signal.aborted) log.error(error, 'Failed to scrape node', { node: name })
      return undefined
    }
  }
}

/** The URL of a node’s kubelet; undefined without a usable address. Pure. */
export function kubeletUrl(
  node: Node | undefined,
  flags: {
    readonly 'kubelet-preferred-address-types': readonly string[]
    readonly 'kubelet-use-node-status-port': boolean
    readonly 'kubelet-port': number
  },
): string | undefined {
  const addresses = node?.status?.addresses ?? []
  const found = flags['kubelet-preferred-address-types'].flatMap((type) =>
    addresses.filter((each) => each.type === type),
  )
  const host = found[0]?.address
  if (host === undefined) return undefined
  const reported = node?.status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0
  const port = flags['kubelet-use-node-status-port'] && reported > 0 ? reported : flags['kubelet-port']
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`
}
