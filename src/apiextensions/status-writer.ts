/**
 * Writes into the status of definitions what the server has to say of them. Each definition is looked at when it changes,
 * and all of a group when names in it become free; several servers do the same, and whoever is second finds it done.
 */
import {
  type CustomResourceDefinition,
  type CustomResourceDefinitionNames,
  CustomResourceDefinitions,
} from '#apis/apiextensions/v1.ts'
import { follow, type Following } from '#apiserver/authorizers/follow.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import { takenNames } from './names.ts'
import { planStatus } from './status-plan.ts'

/** Starts at once; undefined when definitions are not served. */
export function startStatusWriter(registry: Registry, onError: (error: unknown) => void): Following | undefined {
  const store = registry.storeOf(CustomResourceDefinitions)
  if (store === undefined) return undefined
  const writer = new StatusWriter(registry, onError)
  return follow<Entry>(store.collection, {
    set: (entry) => writer.set(entry),
    remove: (entry) => writer.remove(entry),
  })
}

/** After a failure of the store. */
const RETRY_MS = 1000

interface Known {
  readonly entry: Entry
  readonly given: CustomResourceDefinitionNames
}

class StatusWriter {
  readonly #registry: Registry
  readonly #onError: (error: unknown) => void
  /** By group, then by name of the definition. */
  readonly #groups = new Map<string, Map<string, Known>>()

  constructor(registry: Registry, onError: (error: unknown) => void) {
    this.#registry = registry
    this.#onError = onError
  }

  set(entry: Entry): void {
    const { spec, status } = entry.object as CustomResourceDefinition
    const group = this.#groups.get(spec.group) ?? new Map<string, Known>()
    this.#groups.set(spec.group, group)
    const before = group.get(entry.name)?.given
    group.set(entry.name, { entry, given: status.acceptedNames })
    this.#look(group, entry)
    if (before !== undefined && isSmaller(status.acceptedNames, before)) this.#lookAtOthers(group, entry.name)
  }

  remove({ name, object }: Entry): void {
    const { group: groupName } = (object as CustomResourceDefinition).spec
    const group = this.#groups.get(groupName)
    group?.delete(name)
    if (group?.size === 0) this.#groups.delete(groupName)
    else if (group !== undefined) this.#lookAtOthers(group, name)
  }

  /** A name may have become free. */
  #lookAtOthers(group: Map<string, Known>, but: string): void {
    for (const { entry } of group.values()) if (entry.name !== but) this.#look(group, entry)
  }

  #look(group: Map<string, Known>, entry: Entry): void {
    const { clock } = this.#registry.services
    const definition = entry.object as CustomResourceDefinition
    if (isBeingDeleted(definition)) return
    const status = planStatus(definition, takenFor(group, entry.name, definition), clock.now())
    if (status === undefined) return
    // Taken from this moment on, so that no two get the same.
    group.set(entry.name, { entry, given: status.acceptedNames })
    void this.#write(group, entry).catch((error: unknown) => {
      // Somebody was faster: what they wrote is looked at when it comes.
      if (isNotFound(error) || isConflict(error)) return
      this.#onError(error)
      clock.after(RETRY_MS, () => this.#lookAgain(group, entry), { background: true })
    })
  }

  #lookAgain(group: Map<string, Known>, { name, modRevision }: Entry): void {
    const now = group.get(name)?.entry
    if (now?.modRevision === modRevision) this.#look(group, now)
  }

  async #write(group: ReadonlyMap<string, Known>, { name, modRevision }: Entry): Promise<void> {
    const { writer, services } = this.#registry
    const terms = { resourceVersion: String(modRevision), shares: true }
    const change = (live: CustomResourceDefinition): CustomResourceDefinition => {
      const status = planStatus(live, takenFor(group, name, live), services.clock.now())
      return { ...live, metadata: { ...live.metadata }, ...(status !== undefined && { status }) }
    }
    await writer.updateStatus(CustomResourceDefinitions, { name }, change, terms)
  }
}

/** What others were given, and what the definition itself has. */
function takenFor(
  group: ReadonlyMap<string, Known>,
  name: string,
  { status }: CustomResourceDefinition,
): ReturnType<typeof takenNames> {
  const others = [...group].filter(([other]) => other !== name).map(([, { given }]) => given)
  return takenNames([...others, status.acceptedNames])
}

/** Whether something that was taken is no longer. */
function isSmaller(now: CustomResourceDefinitionNames, before: CustomResourceDefinitionNames): boolean {
  const { resources, kinds } = takenNames([now])
  const old = takenNames([before])
  return [...old.resources].some((name) => !resources.has(name)) || [...old.kinds].some((name) => !kinds.has(name))
}
