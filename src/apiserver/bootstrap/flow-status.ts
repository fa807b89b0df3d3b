/**
 * Says in the status of each flow schema whether the priority level it names is there. One that names none matches
 * nothing, and people would wonder why; `kubectl get flowschemas` shows it.
 */
import {
  type FlowSchema,
  type FlowSchemaCondition,
  FlowSchemas,
  PriorityLevelConfigurations,
} from '#apis/flowcontrol/v1.ts'
import { deepCopy } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import { follow, type Following, joinFollowings } from '../authorizers/follow.ts'
import type { Entry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'

const DANGLING = 'Dangling'

/** Starts at once; undefined where flow control is not served. */
export function startFlowStatus(registry: Registry, onError: (error: unknown) => void): Following | undefined {
  const schemas = registry.storeOf(FlowSchemas)
  const levels = registry.storeOf(PriorityLevelConfigurations)
  if (schemas === undefined || levels === undefined) return undefined
  const isThere = (level: string): boolean => levels.collection.get(levels.keyOf('', level)) !== undefined
  const plan = (schema: FlowSchema): FlowSchema | undefined =>
    planFlowStatus(schema, isThere(levelOf(schema)), registry.services.clock.now())
  const look = ({ name, object }: Entry): void => {
    if (plan(object as FlowSchema) === undefined) return
    const write = registry.writer.updateStatus(FlowSchemas, { name }, (live) => plan(live) ?? live)
    void write.catch((error: unknown) => {
      if (!isNotFound(error)) onError(error)
    })
  }
  const lookAtAll = ({ name: level }: Entry): void =>
    schemas.collection.entries().forEach((entry) => {
      if (levelOf(entry.object as FlowSchema) === level) look(entry)
    })
  return joinFollowings([
    follow<Entry>(schemas.collection, { set: look, remove: () => undefined }),
    follow<Entry>(levels.collection, { set: lookAtAll, remove: lookAtAll }),
  ])
}

function levelOf({ spec }: FlowSchema): string {
  return spec.priorityLevelConfiguration.name
}

/** What the schema becomes; undefined when it says so already. Not changed itself. */
export function planFlowStatus(schema: FlowSchema, hasLevel: boolean, nowMs: number): FlowSchema | undefined {
  const conditions = schema.status.conditions ?? []
  const said = conditions.find(({ type }) => type === DANGLING)
  const wanted = conditionOf(levelOf(schema), hasLevel)
  if (said?.status === wanted.status && said.reason === wanted.reason && said.message === wanted.message)
    return undefined
  const isNews = said?.status !== wanted.status
  const lastTransitionTime = isNews ? timeOf(nowMs) : (said.lastTransitionTime ?? timeOf(nowMs))
  const next = deepCopy(schema)
  next.status.conditions = [
    ...conditions.filter(({ type }) => type !== DANGLING),
    { type: DANGLING, status: wanted.status, lastTransitionTime, reason: wanted.reason, message: wanted.message },
  ]
  return next
}

function conditionOf(
  level: string,
  hasLevel: boolean,
): Required<Pick<FlowSchemaCondition, 'status' | 'reason' | 'message'>> {
  const what = `This FlowSchema references the PriorityLevelConfiguration object named ${JSON.stringify(level)}`
  return hasLevel
    ? { status: 'False', reason: 'Found', message: `${what} and it exists` }
    : { status: 'True', reason: 'NotFound', message: `${what} but there is no such object` }
}
