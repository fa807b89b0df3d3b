/** kubectl wait: waits until objects exist, are deleted or meet a condition. */
import { sleep } from '#lib/clock.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration } from '#lib/flags/kinds.ts'
import { stringArray, strings } from '#lib/flags/list-kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { notFoundError } from '#meta/status-errors.ts'
import { isNotFound } from '#meta/status.ts'

import type { Selection } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import { selectFor } from '../builder/selection.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, KubectlError, withoutMissing } from '../errors.ts'
import { ALL_NAMESPACES_FLAG, FIELD_SELECTOR_FLAG, SELECTOR_FLAG } from '../flag-sets.ts'
import { printerOf, printFlags } from '../printing.ts'
import type { AnyObject } from '../session/rest.ts'
import { awaited, LATE, lateFor } from '../wait/awaited.ts'
import { type WaitCondition, waitConditions } from '../wait/conditions.ts'

const WEEK_MS = 7 * 24 * 3600_000
/** Objects that do not exist yet are polled instead of watched. */
const CREATE_POLL_MS = 500

const FLAGS = {
  ...printFlags(),
  ...SELECTOR_FLAG,
  ...FIELD_SELECTOR_FLAG,
  ...ALL_NAMESPACES_FLAG,
  all: flag(bool, false, 'Select all objects of the given types in the namespace.'),
  filename: flag(strings, [], 'Filename, directory, or URL to files identifying the resource.', { shorthand: 'f' }),
  for: flag(
    stringArray,
    [],
    "Condition to wait for: [create|delete|condition=condition-name[=condition-value]|jsonpath='{JSONPath expression}'=[JSONPath value]]. The default condition value is true. Several conditions are awaited one after the other, create first.",
  ),
  local: flag(bool, false, 'Use the objects in files without asking the server for them.'),
  recursive: flag(bool, true, 'Process directories given with -f recursively.', { shorthand: 'R' }),
  timeout: flag(duration, 30_000, 'Time to wait before giving up. Zero checks once. A negative value means a week.'),
}

type WaitInvocation = Invocation<typeof FLAGS>

export const wait: Command = defineCommand({
  name: 'wait',
  use: "([-f FILENAME] | resource.group/resource.name | resource.group [(-l label | --all)]) [--for=create|--for=delete|--for condition=available|--for=jsonpath='{}'[=value]] [options]",
  long: 'Wait for a condition of one or many resources: creation, deletion, a condition in the status, or a value at a JSONPath.',
  examples: `# Wait until a pod is ready
kubectl wait --for=condition=Ready pod/busybox1

# Wait until it is running
kubectl wait --for=jsonpath='{.status.phase}'=Running pod/busybox1

# Wait up to a minute until it is deleted
kubectl wait --for=delete pod/busybox1 --timeout=60s`,
  flags: FLAGS,
  async run(invocation) {
    const { flags, session, clock, stdout } = invocation
    const printer = await printerOf(invocation, { operation: 'condition met' })
    const conditions = waitConditions(flags.for)
    await session.config()
    const timeoutMs = flags.timeout < 0 ? WEEK_MS : flags.timeout
    const end = clock.elapsed() + timeoutMs
    const waitsFor = (kind: WaitCondition['kind']): boolean => conditions.some((one) => one.kind === kind)
    if (waitsFor('create')) await untilCreated(invocation, end)
    let found = 0
    const visiting = (await selected(invocation)).visit(async (info) => {
      found++
      for (const condition of conditions) {
        const met = await untilMet(invocation, info, { condition, end, isOnce: timeoutMs === 0 })
        printer.print(met as unknown as JsonObject, stdout)
      }
    })
    const failed = await visiting.then(
      () => undefined,
      (error: unknown) => (waitsFor('delete') ? withoutMissing(error) : asError(error)),
    )
    if (failed !== undefined) throw failed
    if (found === 0 && !waitsFor('delete')) throw new KubectlError('no matching resources found')
  },
})

async function selected(invocation: WaitInvocation): Promise<Selection> {
  const { args, flags } = invocation
  if (flags.local && args.length > 0) throw new KubectlError(LOCAL_ONLY)
  return selectFor(invocation, {
    allNamespaces: flags['all-namespaces'],
    args,
    allowEmptySelector: flags.all,
    labelSelector: flags.selector,
    fieldSelector: flags['field-selector'],
    latest: true,
    local: flags.local,
  })
}

const LOCAL_ONLY =
  "error: you must specify resources by --filename when --local is set.\nExample resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'"

async function untilCreated(invocation: WaitInvocation, end: number): Promise<void> {
  const { clock, signal } = invocation
  for (;;) {
    const { infos, error } = await (await selected(invocation)).infos()
    if (error !== undefined && !isNotFound(error)) throw error
    if (error === undefined && infos.length > 0) return
    if (clock.elapsed() >= end) throw new KubectlError(LATE)
    await sleep(clock, Math.min(CREATE_POLL_MS, end - clock.elapsed()), signal)
  }
}

interface WaitState {
  readonly condition: WaitCondition
  /** Measured with the injected clock. */
  readonly end: number
  /** Timeout zero: checks the current state once. */
  readonly isOnce: boolean
}

async function untilMet(invocation: WaitInvocation, info: Info, waiting: WaitState): Promise<AnyObject> {
  const { condition } = waiting
  if (info.name === '') throw new KubectlError('resource name must be provided')
  if (condition.kind === 'create') return info.object as AnyObject
  if (condition.kind === 'delete') return untilGone(invocation, info, waiting)
  return untilState(invocation, info, { ...waiting, isMet: condition.isMet })
}

function notMet({ kind, name }: Info): KubectlError {
  return new KubectlError(`condition not met for ${kind.plural}/${name}`)
}

async function untilGone(invocation: WaitInvocation, info: Info, { end, isOnce }: WaitState): Promise<AnyObject> {
  const { session } = invocation
  const { kind, namespace, name } = info
  const rest = await session.rest()
  const now = await rest.get({ kind, namespace, name }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
    return undefined
  })
  if (now === undefined) return info.object as AnyObject
  if (isOnce) throw notMet(info)
  await watched(invocation, info, end, (object) => object === undefined)
  return now
}

async function untilState(
  invocation: WaitInvocation,
  info: Info,
  { end, isOnce, isMet }: WaitState & { readonly isMet: (object: AnyObject) => boolean },
): Promise<AnyObject> {
  const { kind, namespace, name } = info
  if (isOnce) {
    const now = await (await invocation.session.rest()).get({ kind, namespace, name })
    if (!isMet(now)) throw notMet(info)
    return now
  }
  let isSeen = false
  return watched(invocation, info, end, (object) => {
    if (object === undefined && !isSeen) throw notFoundError({ group: kind.group, resource: kind.plural }, name)
    isSeen = true
    return object !== undefined && isMet(object)
  })
}

async function watched(
  { session, clock }: WaitInvocation,
  info: Info,
  end: number,
  isMet: (object: AnyObject | undefined) => boolean,
): Promise<AnyObject> {
  const patience = { timeoutMs: end - clock.elapsed(), late: lateFor(info) }
  return (await awaited(session, info, patience, isMet)) as AnyObject
}
