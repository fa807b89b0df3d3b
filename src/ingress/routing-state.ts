/** Keeps the proxy's routing state in sync with the cluster. */
import { type ConfigMap, ConfigMaps, type Secret, Secrets, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { type Ingress, type IngressClass, IngressClasses, Ingresses } from '#apis/networking/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informer, type InformerOptions } from '#client/informer.ts'
import type { Timer } from '#lib/clock.ts'
import type { CertificateAndKey } from '#lib/http/tls.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'

import { type NamedPair, namedPairs, pairOf, secureHosts } from './certificates.ts'
import { type ClassRule, isOurs } from './classes.ts'
import type { RoutingState } from './decision.ts'
import { endpointsOf } from './endpoints.ts'
import { readOptions } from './options.ts'
import { type Backend, routeTable } from './routes.ts'

export interface ObjectKey {
  readonly namespace: string
  readonly name: string
}

export interface WatchOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly classes: ClassRule
  /** The ConfigMap with global settings. */
  readonly settings: ObjectKey | undefined
  readonly defaultBackend: ObjectKey | undefined
  readonly defaultCertificate: ObjectKey | undefined
  /** Called when certificates may have changed. */
  readonly certificatesChanged: (pairs: readonly NamedPair[], byDefault: CertificateAndKey | undefined) => void
  /** Called once for each problem of an Ingress version. */
  readonly refused: (ingress: Ingress, reason: string) => void
}

/** Collects changes for this long: an installation changes many objects at once. */
const SETTLE_MS = 50
const SERVICE_LABEL = 'kubernetes.io/service-name'
const BY_SERVICE = 'service'

interface Informers {
  readonly ingresses: Informer<Ingress>
  readonly classes: Informer<IngressClass>
  readonly services: Informer<Service>
  readonly slices: Informer<EndpointSlice>
  readonly secrets: Informer<Secret>
  readonly settings: Informer<ConfigMap> | undefined
}

export class WatchedRoutingState {
  readonly #options: WatchOptions
  readonly #informers: Informers
  readonly #listeners: (() => void)[] = []
  /** By Service and port; cleared on any change. */
  readonly #endpoints = new Map<string, readonly string[]>()
  /** Problems already reported for the current Ingress versions. */
  readonly #reported = new Set<string>()
  #timer: Timer | undefined
  #own: readonly Ingress[] = []
  #routingState: RoutingState = EMPTY
  #isSynced = false
  /** All caches are synced and certificates are set. */
  readonly synced: Promise<void>

  constructor(options: WatchOptions) {
    this.#options = options
    this.#informers = openInformers(options)
    const { settings, services, slices, ...others } = this.#informers
    const changed = (): void => this.#changed()
    const moved = (): void => {
      this.#endpoints.clear()
      if (options.defaultBackend !== undefined) changed()
    }
    for (const informer of [...Object.values(others), ...(settings === undefined ? [] : [settings])])
      informer.listen({ added: changed, updated: changed, deleted: changed })
    for (const informer of [services, slices]) informer.listen({ added: moved, updated: moved, deleted: moved })
    options.signal.addEventListener('abort', () => this.#timer?.cancel(), { once: true })
    this.synced = this.#begin()
  }

  /** The current state. */
  get routingState(): RoutingState {
    return this.#routingState
  }

  /** The Ingresses of this controller. */
  get ingresses(): readonly Ingress[] {
    return this.#own
  }

  get isSynced(): boolean {
    return this.#isSynced
  }

  /** Calls `task` when Ingresses may have changed. */
  onChange(task: () => void): void {
    this.#listeners.push(task)
  }

  async #begin(): Promise<void> {
    const { settings, ...others } = this.#informers
    await Promise.all(
      [...Object.values(others), ...(settings === undefined ? [] : [settings])].map(({ synced }) => synced),
    )
    this.#isSynced = true
    this.#read()
  }

  #changed(): void {
    if (this.#isSynced) this.#timer ??= this.#options.client.clock.after(SETTLE_MS, () => this.#read())
  }

  #read(): void {
    this.#timer = undefined
    const { classes, defaultBackend, defaultCertificate, certificatesChanged } = this.#options
    const { ingresses, classes: known } = this.#informers
    this.#own = [...ingresses.list()].filter((each) => isOurs(each, (name) => known.get(name), classes))
    const settings = this.#settings()
    const refuse = this.#refuser()
    reportUnsupported(this.#own, settings, refuse)
    const pairs = namedPairs(this.#own, (namespace, name) => this.#pair({ namespace, name }), refuse)
    certificatesChanged(pairs, defaultCertificate && this.#pair(defaultCertificate))
    this.#routingState = {
      routes: routeTable(this.#own, settings, refuse),
      secureHosts: secureHosts(this.#own),
      defaultBackend: defaultBackend && this.#firstPort(defaultBackend),
      trustsForwarded: settings['use-forwarded-headers'] === 'true',
      keepsUnderscores: settings['enable-underscores-in-headers'] === 'true',
      endpointsOf: (backend) => this.#endpointsOf(backend),
    }
    for (const task of this.#listeners) task()
  }

  #settings(): Readonly<Record<string, string>> {
    const { settings } = this.#options
    return (settings && this.#informers.settings?.get(`${settings.namespace}/${settings.name}`)?.data) ?? {}
  }

  #pair({ namespace, name }: ObjectKey): CertificateAndKey | undefined {
    return pairOf(this.#informers.secrets.get(`${namespace}/${name}`))
  }

  /** The first port of the Service. */
  #firstPort({ namespace, name }: ObjectKey): Backend | undefined {
    const port = this.#informers.services.get(`${namespace}/${name}`)?.spec.ports?.[0]?.port
    return port === undefined ? undefined : { namespace, service: name, port }
  }

  #endpointsOf(backend: Backend): readonly string[] {
    const { services, slices } = this.#informers
    const service = `${backend.namespace}/${backend.service}`
    const key = `${service}:${backend.port}`
    const known = this.#endpoints.get(key)
    if (known !== undefined) return known
    const found = endpointsOf(backend, services.get(service), slices.by(BY_SERVICE, service))
    this.#endpoints.set(key, found)
    return found
  }

  /** Returns a function that reports each problem of an Ingress version once. Forgets deleted Ingresses. */
  #refuser(): (ingress: Ingress, reason: string) => void {
    const version = ({ metadata: { uid, generation } }: Ingress): string => `${uid} ${generation} `
    const current = this.#own.map(version)
    for (const each of this.#reported) if (!current.some((start) => each.startsWith(start))) this.#reported.delete(each)
    return (ingress, reason) => {
      const key = `${version(ingress)}${reason}`
      if (this.#reported.has(key)) return
      this.#reported.add(key)
      this.#options.refused(ingress, reason)
    }
  }
}

const EMPTY: RoutingState = {
  routes: { hosts: new Map() },
  secureHosts: new Set(),
  endpointsOf: () => [],
  defaultBackend: undefined,
  trustsForwarded: false,
  keepsUnderscores: false,
}

function openInformers({ client, random, log, signal, settings }: WatchOptions): Informers {
  const start = <T extends KubeObject>(
    own: Pick<InformerOptions<T>, 'kind'> & Partial<InformerOptions<T>>,
  ): Informer<T> => {
    const onError = (error: unknown): void =>
      log.error(error, 'Failed to watch objects for Ingress routing', { kind: own.kind.kind })
    const informer = new Informer<T>({ client, random, onError, ...own })
    void informer.run(signal)
    return informer
  }
  return {
    ingresses: start({ kind: Ingresses }),
    classes: start({ kind: IngressClasses }),
    services: start({ kind: Services }),
    slices: start({
      kind: EndpointSlices,
      indexes: {
        [BY_SERVICE]: ({ metadata: { namespace, labels } }) => [`${namespace}/${labels?.[SERVICE_LABEL] ?? ''}`],
      },
    }),
    secrets: start({ kind: Secrets, transform: onlyPair }),
    settings:
      settings &&
      start({
        kind: ConfigMaps,
        selection: { namespace: settings.namespace, fieldSelector: `metadata.name=${settings.name}` },
      }),
  }
}

/** Drops other fields of the Secret. */
function onlyPair({ metadata, data = {} }: Secret): Secret {
  const { name, namespace, uid, resourceVersion } = metadata
  const kept = Object.entries(data).filter(([key]) => key === 'tls.crt' || key === 'tls.key')
  return { metadata: { name, namespace, uid, resourceVersion } as Secret['metadata'], data: Object.fromEntries(kept) }
}

function reportUnsupported(
  own: readonly Ingress[],
  settings: Readonly<Record<string, string>>,
  refuse: (ingress: Ingress, reason: string) => void,
): void {
  for (const ingress of own) {
    const { unknown, closedBy } = readOptions(ingress.metadata.annotations ?? {}, settings)
    if (closedBy !== undefined)
      refuse(ingress, `Annotation "${closedBy}" is not supported and would keep clients out: it is closed`)
    for (const name of unknown) if (name !== closedBy) refuse(ingress, `Annotation "${name}" is not supported`)
  }
}
