/**
 * Maintains the APIServices of custom resource groups: one for each group version that a CustomResourceDefinition
 * serves. It creates them, restores them after changes and removes them. An APIService that a user created stays
 * unchanged.
 */
import { type CustomResourceDefinition, CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { type APIService, APIServices } from '#apis/apiregistration/v1.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import { follow, type Following, joinFollowings } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { semanticEqual } from '#meta/object.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

const AUTO_MANAGED = 'kube-aggregator.kubernetes.io/automanaged'
const GROUP_PRIORITY = 1000
const VERSION_PRIORITY = 100
/** The pause after a failure of the store. */
const RETRY_MS = 1000

/** Starts at once; undefined if definitions or APIServices are not served. */
export function startApiServices(registry: Registry, onError: (error: unknown) => void): Following | undefined {
  const definitions = registry.storeOf(CustomResourceDefinitions)
  const services = registry.storeOf(APIServices)
  if (definitions === undefined || services === undefined) return undefined
  const announcing = new Announcing(registry, onError)
  return joinFollowings([
    follow<Entry>(services.collection, {
      set: ({ object }) => announcing.found(object as APIService),
      remove: ({ name }) => announcing.lost(name),
    }),
    follow<Entry>(definitions.collection, {
      set: ({ name, object }) => announcing.set(name, object as CustomResourceDefinition),
      remove: ({ name }) => announcing.remove(name),
    }),
  ])
}

interface GroupVersion {
  readonly group: string
  readonly version: string
}

class Announcing {
  readonly #registry: Registry
  readonly #onError: (error: unknown) => void
  /** The wanted APIServices by name, with their definitions. */
  readonly #wanted = new Map<string, GroupVersion & { readonly by: Set<string> }>()
  readonly #byDefinition = new Map<string, readonly string[]>()
  readonly #there = new Map<string, APIService>()
  readonly #busy = new Map<string, 'once' | 'again'>()

  constructor(registry: Registry, onError: (error: unknown) => void) {
    this.#registry = registry
    this.#onError = onError
  }

  set(definition: string, { spec: { group, versions } }: CustomResourceDefinition): void {
    const served = versions.filter((version) => version.served).map(({ name: version }) => ({ group, version }))
    const names = served.map(nameOf)
    const before = this.#byDefinition.get(definition) ?? []
    this.#byDefinition.set(definition, names)
    for (const gone of before.filter((name) => !names.includes(name))) this.#unwant(gone, definition)
    for (const one of served) this.#want(one, definition)
  }

  remove(definition: string): void {
    for (const name of this.#byDefinition.get(definition) ?? []) this.#unwant(name, definition)
    this.#byDefinition.delete(definition)
  }

  found(service: APIService): void {
    const { name = '' } = service.metadata
    this.#there.set(name, service)
    this.#look(name)
  }

  lost(name: string): void {
    this.#there.delete(name)
    this.#look(name)
  }

  #want(one: GroupVersion, definition: string): void {
    const name = nameOf(one)
    const known = this.#wanted.get(name)
    if (known !== undefined) return void known.by.add(definition)
    this.#wanted.set(name, { ...one, by: new Set([definition]) })
    this.#look(name)
  }

  #unwant(name: string, definition: string): void {
    const wanted = this.#wanted.get(name)
    wanted?.by.delete(definition)
    if (wanted?.by.size !== 0) return
    this.#wanted.delete(name)
    this.#look(name)
  }

  /** Reconciles one APIService; a request during a run causes another run. */
  #look(name: string): void {
    if (this.#planOf(name) === undefined) return
    if (this.#busy.has(name)) return void this.#busy.set(name, 'again')
    this.#busy.set(name, 'once')
    void this.#write(name)
      .catch((error: unknown) => {
        if (isNotFound(error) || isConflict(error)) return
        this.#onError(error)
        this.#registry.services.clock.after(RETRY_MS, () => this.#look(name), { background: true })
      })
      .finally(() => {
        const isAgain = this.#busy.get(name) === 'again'
        this.#busy.delete(name)
        if (isAgain) this.#look(name)
      })
  }

  #planOf(name: string): 'create' | 'update' | 'delete' | undefined {
    const wanted = this.#wanted.get(name)
    const there = this.#there.get(name)
    if (there === undefined) return wanted === undefined ? undefined : 'create'
    if (there.metadata.labels?.[AUTO_MANAGED] !== 'true') return undefined
    if (wanted === undefined) return 'delete'
    return semanticEqual(there.spec, specOf(wanted)) ? undefined : 'update'
  }

  async #write(name: string): Promise<void> {
    const { writer } = this.#registry
    const wanted = this.#wanted.get(name)
    const plan = this.#planOf(name)
    if (plan === 'delete') await writer.delete(APIServices, { name })
    if (wanted === undefined) return
    const spec = specOf(wanted)
    const metadata = { name, labels: { [AUTO_MANAGED]: 'true' } }
    if (plan === 'create') await writer.ensure(APIServices, { metadata, spec, status: {} })
    if (plan === 'update') await writer.update(APIServices, { name }, (live) => ({ ...live, spec }))
  }
}

function nameOf({ group, version }: GroupVersion): string {
  return `${version}.${group}`
}

function specOf({ group, version }: GroupVersion): APIService['spec'] {
  return { group, version, groupPriorityMinimum: GROUP_PRIORITY, versionPriority: VERSION_PRIORITY }
}
