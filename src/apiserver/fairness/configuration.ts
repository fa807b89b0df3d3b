/** Compiles the stored flow schemas and priority levels for requests, and recompiles them when a spec changes. */
import { FlowSchemas, PriorityLevelConfigurations } from '#apis/flowcontrol/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Entry } from '../registry/entry.ts'
import { follow, type Following, joinFollowings } from '../registry/follow.ts'
import type { Registry } from '../registry/registry.ts'
import { mandatoryFlowSchemas, mandatoryPriorityLevels } from './default-objects.ts'
import { type Flow, flowsOf, type SchemaConfig } from './flow-schemas.ts'
import type { LevelConfig } from './level.ts'
import { Levels, type LevelsParts, sumOf } from './levels.ts'
import { createFlowMeter, type KindMeter } from './meters.ts'

export interface Configuration {
  flowOf(user: User, info: RequestInfo): Flow
  levels(): Levels
  close(): void
}

/** The registry and the dependencies of the levels. */
export interface ConfigurationParts extends LevelsParts {
  readonly registry: Pick<Registry, 'storeOf'>
}

export function followConfiguration(parts: ConfigurationParts, kinds: KindMeter): Configuration {
  const schemas = new Map<string, SchemaConfig>()
  const configs = new Map<string, LevelConfig>()
  const levels = new Levels(parts)
  /** Undefined after a change. */
  let flows: readonly Flow[] | undefined
  const changed = (): void => void (flows = undefined)
  const following = joinFollowings([
    ...followSpecs(parts, FlowSchemas, schemas, changed),
    ...followSpecs(parts, PriorityLevelConfigurations, configs, changed),
  ])
  const current = (): readonly Flow[] => {
    if (flows !== undefined) return flows
    levels.configure(withMandatory(configs, mandatoryPriorityLevels))
    kinds.capacity = {
      queued: Math.max(
        1,
        sumOf(levels.all(), ({ queueCapacity }) => queueCapacity),
      ),
      seats: Math.max(
        1,
        sumOf(levels.all(), ({ nominal }) => nominal),
      ),
    }
    flows = flowsOf(withMandatory(schemas, mandatoryFlowSchemas), {
      levelNamed: (name) => levels.get(name),
      meterOf: (level, schema) => createFlowMeter(parts.meters, level, schema),
    })
    return flows
  }
  return {
    flowOf(user, info) {
      const known = current()
      for (const flow of known) if (flow.matches(user, info)) return flow
      // Every user is authenticated or not, so the last schemas match every request.
      return known.find(({ name }) => name === CATCH_ALL) as Flow
    },
    levels() {
      current()
      return levels
    },
    close: () => following.close(),
  }
}

const CATCH_ALL = 'catch-all'

/** The stored objects and the mandatory ones. */
function withMandatory<T extends { readonly metadata: { readonly name?: string } }>(
  stored: ReadonlyMap<string, T>,
  mandatory: readonly T[],
): T[] {
  return [...stored.values(), ...mandatory.filter(({ metadata }) => !stored.has(metadata.name ?? ''))]
}

/** Empty if the kind is not served. */
function followSpecs<T extends KubeObject>(
  { registry }: ConfigurationParts,
  kind: Kind<T>,
  known: Map<string, Pick<T, 'metadata'>>,
  changed: () => void,
): Following[] {
  const store = registry.storeOf(kind)
  if (store === undefined) return []
  return [
    follow<Entry>(store.collection, {
      set({ name, object }) {
        const { uid, generation } = known.get(name)?.metadata ?? {}
        known.set(name, object)
        // A status update changes nothing here.
        if (uid !== object.metadata.uid || generation !== object.metadata.generation) changed()
      },
      remove({ name }) {
        known.delete(name)
        changed()
      },
    }),
  ]
}
