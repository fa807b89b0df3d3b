/** Keeps what the proxy decides by in step with the cluster. */
import { type ConfigMap, ConfigMaps, type Secret, Secrets, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { type Ingress, type IngressClass, IngressClasses, Ingresses } from '#apis/networking/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informer, type InformerOptions } from '#client/informer.ts'
import type { Timer } from '#lib/clock.ts'
import type { CertificateAndKey } from '#lib/http/tls.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'

import { type NamedPair, namedPairs, pairOf, secureHosts } from './certificates.ts'
import { type ClassRule, isOurs } from './classes.ts'
import type { World } from './decision.ts'
import { endpointsOf } from './endpoints.ts'
import { readOptions } from './options.ts'
import { type Backend, routeTable } from './routes.ts'

export interface ObjectPlace {
  readonly namespace: string
  readonly name: string
}

export interface WatchOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly classes: ClassRule
  /** ConfigMap with settings for all Ingresses. */
  readonly settings: ObjectPlace | undefined
  readonly defaultBackend: ObjectPlace | undefined
  readonly defaultCertificate: ObjectPlace | undefined
  /** Told whenever certificates may be others. */
  readonly certificatesChanged: (pairs: readonly NamedPair[], byDefault: CertificateAndKey | undefined) => void
  /** Told what is wrong with an Ingress, once for each of its versions. */
  readonly refused: (ingress: Ingress, reason: string) => void
}

/** Many objects change at once when something is installed: they are looked at together. */
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

export class WatchedWorld {
  readonly #options: WatchOptions
  readonly #informers: Informers
  readonly #listeners: (() => void)[] = []
  /** By Service and port; forgotten when any of them changes. */
  readonly #endpoints = new Map<string, readonly string[]>()
  /** What was said of Ingresses in their present versions. */
  readonly #told = new Set<string>()
  #timer: Timer | undefined
  #own: readonly Ingress[] = []
  #world: World = EMPTY
  #isSynced = false
  /** Everything was seen once, and certificates were told. */
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

  /** As it is now. */
  get world(): World {
    return this.#world
  }

  /** The Ingresses that are ours. */
  get ingresses(): readonly Ingress[] {
    return this.#own
  }

  get isSynced(): boolean {
    return this.#isSynced
  }

  /** Called when Ingresses may have changed. */
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
    tellUnknown(this.#own, settings, refuse)
    const pairs = namedPairs(this.#own, (namespace, name) => this.#pair({ namespace, name }), refuse)
    certificatesChanged(pairs, defaultCertificate && this.#pair(defaultCertificate))
    this.#world = {
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

  #pair({ namespace, name }: ObjectPlace): CertificateAndKey | undefined {
    return pairOf(this.#informers.secrets.get(`${namespace}/${name}`))
  }

  /** The first port of the Service, whatever it is called. */
  #firstPort({ namespace, name }: ObjectPlace): Backend | undefined {
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

  /** Says a thing of an Ingress once, until it is changed. Forgets those that have gone. */
  #refuser(): (ingress: Ingress, reason: string) => void {
    const version = ({ metadata: { uid, generation } }: Ingress): string => `${uid} ${generation} `
    const current = this.#own.map(version)
    for (const each of this.#told) if (!current.some((start) => each.startsWith(start))) this.#told.delete(each)
    return (ingress, reason) => {
      const key = `${version(ingress)}${reason}`
      if (this.#told.has(key)) return
      this.#told.add(key)
      this.#options.refused(ingress, reason)
    }
  }
}

const EMPTY: World = {
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
    const onError = (error: unknown): void => log.error(error, 'The cluster cannot be watched', { kind: own.kind.kind })
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

/** What else Secrets hold is nobody's business here. */
function onlyPair({ metadata, data = {} }: Secret): Secret {
  const { name, namespace, uid, resourceVersion } = metadata
  const kept = Object.entries(data).filter(([key]) => key === 'tls.crt' || key === 'tls.key')
  return { metadata: { name, namespace, uid, resourceVersion } as Secret['metadata'], data: Object.fromEntries(kept) }
}

function tellUnknown(
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
