/**
 * Writes the status of CustomResourceDefinitions. A changed definition is processed at once; when a name becomes free,
 * all definitions of the group are. Several servers may do this concurrently; only the first one writes.
 */
import {
  type CustomResourceDefinition,
  type CustomResourceDefinitionNames,
  CustomResourceDefinitions,
} from '#apis/apiextensions/v1.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import { follow, type Following } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import { takenNames } from './names.ts'
import { planStatus } from './status-plan.ts'

/** Starts at once; undefined if definitions are not served. */
export function startStatusWriter(registry: Registry, onError: (error: unknown) => void): Following | undefined {
  const store = registry.storeOf(CustomResourceDefinitions)
  if (store === undefined) return undefined
  const writer = new StatusWriter(registry, onError)
  return follow<Entry>(store.collection, {
    set: (entry) => writer.set(entry),
    remove: (entry) => writer.remove(entry),
  })
}

/** The pause after a failure of the store. */
const RETRY_MS = 1000

interface DefinitionState {
  readonly entry: Entry
  readonly given: CustomResourceDefinitionNames
}

class StatusWriter {
  readonly #registry: Registry
  readonly #onError: (error: unknown) => void
  /** By group, then by name of the definition. */
  readonly #groups = new Map<string, Map<string, DefinitionState>>()

  constructor(registry: Registry, onError: (error: unknown) => void) {
    this.#registry = registry
    this.#onError = onError
  }

  set(entry: Entry): void {
    const { spec, status } = entry.object as CustomResourceDefinition
    const group = this.#groups.get(spec.group) ?? new Map<string, DefinitionState>()
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
  #lookAtOthers(group: Map<string, DefinitionState>, but: string): void {
    for (const { entry } of group.values()) if (entry.name !== but) this.#look(group, entry)
  }

  #look(group: Map<string, DefinitionState>, entry: Entry): void {
    const { clock } = this.#registry.services
    const definition = entry.object as CustomResourceDefinition
    if (isBeingDeleted(definition)) return
    const status = planStatus(definition, takenFor(group, entry.name, definition), clock.now())
    if (status === undefined) return
    // Reserved from this moment on, so that no two definitions get the same name.
    group.set(entry.name, { entry, given: status.acceptedNames })
    void this.#write(group, entry).catch((error: unknown) => {
      // Another server was faster: its write is processed when it arrives.
      if (isNotFound(error) || isConflict(error)) return
      this.#onError(error)
      clock.after(RETRY_MS, () => this.#lookAgain(group, entry), { background: true })
    })
  }

  #lookAgain(group: Map<string, DefinitionState>, { name, modRevision }: Entry): void {
    const now = group.get(name)?.entry
    if (now?.modRevision === modRevision) this.#look(group, now)
  }

  async #write(group: ReadonlyMap<string, DefinitionState>, { name, modRevision }: Entry): Promise<void> {
    const { writer, services } = this.#registry
    const terms = { resourceVersion: String(modRevision), shares: true }
    const change = (live: CustomResourceDefinition): CustomResourceDefinition => {
      const status = planStatus(live, takenFor(group, name, live), services.clock.now())
      return { ...live, metadata: { ...live.metadata }, ...(status !== undefined && { status }) }
    }
    await writer.updateStatus(CustomResourceDefinitions, { name }, change, terms)
  }
}

/** The accepted names of others, and those of the definition itself. */
function takenFor(
  group: ReadonlyMap<string, DefinitionState>,
  name: string,
  { status }: CustomResourceDefinition,
): ReturnType<typeof takenNames> {
  const others = [...group].filter(([other]) => other !== name).map(([, { given }]) => given)
  return takenNames([...others, status.acceptedNames])
}

/** True if a taken name has become free. */
function isSmaller(now: CustomResourceDefinitionNames, before: CustomResourceDefinitionNames): boolean {
  const { resources, kinds } = takenNames([now])
  const old = takenNames([before])
  return [...old.resources].some((name) => !resources.has(name)) || [...old.kinds].some((name) => !kinds.has(name))
}
