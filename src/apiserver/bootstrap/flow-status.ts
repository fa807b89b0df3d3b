/** Sets the condition Dangling of flow schemas: true if the priority level that a schema references does not exist. */
import {
  type FlowSchema,
  type FlowSchemaCondition,
  FlowSchemas,
  PriorityLevelConfigurations,
} from '#apis/flowcontrol/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import type { Entry } from '../registry/entry.ts'
import { follow, type Following, joinFollowings } from '../registry/follow.ts'
import type { Registry } from '../registry/registry.ts'

/** The field manager; upstream's name. */
const MANAGER = 'api-priority-and-fairness-config-consumer-v1'
const DANGLING = 'Dangling'

/** Starts at once; undefined if flow control is not served. */
export function startFlowStatus(registry: Registry, onError: (error: unknown) => void): Following | undefined {
  const schemas = registry.storeOf(FlowSchemas)
  const levels = registry.storeOf(PriorityLevelConfigurations)
  if (schemas === undefined || levels === undefined) return undefined
  const { clock } = registry.services
  const writer = registry.writer.managing(MANAGER)
  const isThere = (level: string): boolean => levels.collection.get(levels.keyOf('', level)) !== undefined
  const pace = createPace(clock)
  const look = ({ key, name, object }: Entry): void => {
    const schema = object as FlowSchema
    const condition = planDangling(schema, isThere(levelOf(schema)), clock.now())
    if (condition === undefined) return
    const mayWrite = pace(name, () => {
      const entry = schemas.collection.get(key)
      if (entry !== undefined) look(entry)
    })
    if (!mayWrite) return
    void writer.applyStatus(FlowSchemas, { name }, { conditions: [condition] }).catch((error: unknown) => {
      if (!isNotFound(error)) onError(error)
    })
  }
  const lookAtAll = ({ name: level }: Entry): void =>
    schemas.collection.entries().forEach((entry) => {
      if (levelOf(entry.object as FlowSchema) === level) look(entry)
    })
  // Existing levels are read together with the schemas.
  const seen = { isStart: true }
  const ofLevels = follow<Entry>(levels.collection, {
    set: (level) => void (seen.isStart || lookAtAll(level)),
    remove: lookAtAll,
  })
  seen.isStart = false
  return joinFollowings([ofLevels, follow<Entry>(schemas.collection, { set: look, remove: () => undefined })])
}

/** Servers with different views must not overwrite each other without end: the rate per minute is limited. */
const WRITES_PER_MINUTE = 6
const LATER_MS = 45_000

/** True if the write may happen now; otherwise `again` runs later. */
function createPace(clock: Clock): (name: string, again: () => void) => boolean {
  const written = new Map<string, readonly number[]>()
  return (name, again) => {
    const nowMs = clock.elapsed()
    const recent = (written.get(name) ?? []).filter((atMs) => nowMs - atMs < 60_000)
    const mayWrite = recent.length < WRITES_PER_MINUTE
    written.set(name, mayWrite ? [...recent, nowMs] : recent)
    if (!mayWrite) clock.after(LATER_MS, again, { background: true })
    return mayWrite
  }
}

function levelOf({ spec }: FlowSchema): string {
  return spec.priorityLevelConfiguration.name
}

/** The new condition; undefined if the schema has it already. */
export function planDangling(schema: FlowSchema, hasLevel: boolean, nowMs: number): FlowSchemaCondition | undefined {
  const current = schema.status.conditions?.find(({ type }) => type === DANGLING)
  const { status, reason, message } = conditionOf(levelOf(schema), hasLevel)
  if (current?.status === status && current.reason === reason && current.message === message) return undefined
  return { type: DANGLING, status, lastTransitionTime: timeOf(nowMs), reason, message }
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
