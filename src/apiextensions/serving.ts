/**
 * Registers the resources of established CustomResourceDefinitions in the registry. A definition takes effect within
 * the commit that changed it, whichever server wrote it.
 */
import { type CustomResourceDefinition, CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import { follow, type Following } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'

import { type Converter, customResourceOf } from './custom-resource.ts'
import { isServed, isTerminating, looksAs } from './definition.ts'

export interface ServingOptions {
  readonly registry: Registry
  /** The conversion of a definition; undefined if only the name of the version changes. */
  readonly converterOf: (definition: CustomResourceDefinition) => Converter | undefined
  readonly onError: (error: unknown) => void
}

/** The pause after a failure of the store. */
const RETRY_MS = 1000

/** The served resources of a definition. */
interface Served {
  readonly group: string
  readonly plural: string
  /** The served state of the definition. */
  readonly entry: Entry
  readonly isTerminating: boolean
}

/** Undefined if definitions are not served. Resolves when all existing ones are served. */
export function startServing(options: ServingOptions): Following | undefined {
  const store = options.registry.storeOf(CustomResourceDefinitions)
  if (store === undefined) return undefined
  const serving = new Serving(options)
  const following = follow<Entry>(store.collection, {
    set: (entry) => serving.set(entry),
    remove: ({ name }) => serving.remove(name),
  })
  return { ready: following.ready.then(() => serving.settled()), close: () => following.close() }
}

class Serving {
  readonly #options: ServingOptions
  readonly #served = new Map<string, Served>()
  /** Serializes changes of the registry for each definition. */
  readonly #running = new Map<string, Promise<void>>()

  constructor(options: ServingOptions) {
    this.#options = options
  }

  set(entry: Entry): void {
    const definition = entry.object as CustomResourceDefinition
    if (!isServed(definition)) return this.remove(entry.name)
    const { spec, status } = definition
    const next: Served = {
      group: spec.group,
      plural: status.acceptedNames.plural,
      entry,
      isTerminating: isTerminating(definition),
    }
    const before = this.#served.get(entry.name)
    const looksTheSame = before !== undefined && looksAs(definition, before.entry.object as CustomResourceDefinition)
    if (looksTheSame && before.isTerminating === next.isTerminating) return
    this.#served.set(entry.name, next)
    const resource = customResourceOf(entry, this.#options.converterOf(definition))
    this.#run(entry.name, next, () => this.#options.registry.addCustom({ ...resource, looksTheSame }))
  }

  remove(name: string): void {
    const served = this.#served.get(name)
    if (served === undefined) return
    this.#served.delete(name)
    this.#run(name, undefined, () => void this.#options.registry.remove(served))
  }

  /** Skipped if it has changed meanwhile. */
  #retry(name: string, failed: Served): void {
    const { clock } = this.#options.registry.services
    const again = (): void => {
      if (this.#served.get(name) !== failed) return
      this.#served.delete(name)
      this.set(failed.entry)
    }
    clock.after(RETRY_MS, again, { background: true })
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  #run(name: string, next: Served | undefined, work: () => Promise<void> | void): void {
    const before = this.#running.get(name)
    // Synchronous work is done at once, in the same commit.
    const running = (before === undefined ? Promise.resolve(work()) : before.then(work)).catch((error: unknown) => {
      this.#options.onError(error)
      if (next !== undefined) this.#retry(name, next)
    })
    this.#running.set(name, running)
    void running.finally(() => {
      if (this.#running.get(name) === running) this.#running.delete(name)
    })
  }
}
