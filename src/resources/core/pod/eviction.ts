/**
 * The `eviction` subresource of pods: a delete that respects disruption budgets. It first decrements the budget's
 * allowed disruptions with optimistic locking; if none are left, the client gets 429.
 */
import type { Pod, PodCondition } from '#apis/core/v1.ts'
import { type Eviction, type PodDisruptionBudget, PodDisruptionBudgets } from '#apis/policy/v1.ts'
import { admitBody } from '#apiserver/handlers/admit.ts'
import { decodeBody, otherRequest, settleNamespace, writeRequestOf } from '#apiserver/handlers/body.ts'
import { readEntry } from '#apiserver/handlers/get.ts'
import { formOf, type View } from '#apiserver/handlers/view.ts'
import { checkPreconditions } from '#apiserver/registry/deletion.ts'
import type { ObjectReader } from '#apiserver/registry/resource.ts'
import type { Shapes } from '#apiserver/registry/shapes.ts'
import type { Answer, Call } from '#component/requests/call.ts'
import type { Clock } from '#lib/clock.ts'
import { type AnyCondition, setCondition } from '#meta/conditions.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import { asSelector } from '#meta/label-selector.ts'
import { isEverything, matchesLabels } from '#meta/labels.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { type DeleteOptions, invalidOptionsError, validateDeleteOptions } from '#meta/options.ts'
import { badRequestError, failure, forbiddenError, tooManyRequestsError } from '#meta/status-errors.ts'
import { isConflict } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'
import { isReady } from '#model/pods.ts'

const KIND = {
  group: 'policy',
  version: 'v1',
  kind: 'Eviction',
  acceptsVersion: (version: string): boolean => version === OLD_VERSION,
}
/** policy/v1beta1 is not served any more, but clients still send it, with the same fields. */
const OLD_VERSION = 'v1beta1'
const RETRY_SECONDS = 10

/** POST to `pods/NAME/eviction`. */
export async function evictPod(call: Call, view: View): Promise<Answer> {
  const form = formOf(call, 'object', false)
  const fieldValidation = call.query.get('fieldValidation') ?? undefined
  const eviction = (await decodeBody(call, readingOld(view), KIND, fieldValidation)) as Eviction
  const own = eviction.metadata.name ?? ''
  if (own !== call.info.name) throw badRequestError('name in URL does not match name in Eviction object')
  settleNamespace(eviction, call, true)
  const options = optionsOf(eviction, call)
  const validate = await admitBody(call, view, KIND, eviction)
  await validate()
  await evict(call, view, options)
  const success = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } as KubeObject
  return view.representation.value(success, form, 201)
}

function readingOld(view: View): View {
  const { resource } = view
  const isOld = ({ group, version }: GroupVersionKind): boolean => group === KIND.group && version === OLD_VERSION
  const schemaFor: Shapes['schemaFor'] = (gvk) => resource.shapes.schemaFor(isOld(gvk) ? KIND : gvk)
  const shapes: Shapes = { ...resource.shapes, schemaFor }
  return { ...view, resource: { ...resource, shapes } }
}

function optionsOf({ deleteOptions = {} }: Eviction, call: Call): DeleteOptions {
  const dryRun = call.query.getAll('dryRun')
  const options = { ...deleteOptions, ...(dryRun.length === 0 ? {} : { dryRun }) } as DeleteOptions
  const errors = validateDeleteOptions(options)
  if (errors.length > 0) throw invalidOptionsError('DeleteOptions', errors)
  return options
}

async function evict(call: Call, view: View, options: DeleteOptions): Promise<void> {
  for (let tries = TRIES; ; tries--) {
    const pod = (await readEntry(call, view)).object as Pod
    if (!needsNoBudget(pod)) return evictWithin(call, view, pod, options)
    // A pending pod is deleted only in the observed state, because it may have become ready.
    const isWaiting = pod.status.phase === 'Pending' && pod.metadata.deletionTimestamp === undefined
    try {
      return await remove(call, view, guarded(options, pod, isWaiting))
    } catch (error) {
      if (namesVersion(options) || !isConflict(error) || tries === 1) throw error
    }
  }
}

/** A running pod is evicted within its budget. */
async function evictWithin(call: Call, view: View, pod: Pod, options: DeleteOptions): Promise<void> {
  const budget = await budgetOf(view.services.objects, pod)
  const isSpare = budget !== undefined && mayGoUnready(budget, pod)
  if (budget !== undefined && !isSpare) await takeDisruption(view, budget, pod, isDry(options))
  try {
    await remove(call, view, guarded(options, pod, isSpare))
  } catch (error) {
    if (isSpare && isConflict(error) && !namesVersion(options)) refuse(processing(budget), RETRY_SECONDS)
    throw error
  }
}

/** Only the observed pod; with `isSeen` only in the observed version. */
function guarded(options: DeleteOptions, { metadata }: Pod, isSeen: boolean): DeleteOptions {
  const { uid = '', resourceVersion = '' } = metadata
  return { ...options, preconditions: { uid, ...(isSeen && { resourceVersion }), ...options.preconditions } }
}

function namesVersion({ preconditions }: DeleteOptions): boolean {
  return preconditions?.resourceVersion !== undefined
}

/** The number of retries for an unprotected pod that others change all the time. */
const TRIES = 20

function isDry({ dryRun = [] }: DeleteOptions): boolean {
  return dryRun.length > 0
}

/** Adds the DisruptionTarget condition and deletes the pod, without running admission again. */
async function remove(call: Call, view: View, options: DeleteOptions): Promise<void> {
  const { name } = call.info
  const { store, services, resource } = view
  const { dryRun } = options
  const writeRequest = writeRequestOf(call, view.representation.kind, dryRun === undefined ? {} : { dryRun })
  const request = otherRequest(writeRequest, { subresource: '', isAdmitted: true })
  let { preconditions = {} } = options
  if (!isDry(options)) {
    const { entry } = await store.update(otherRequest(request, { subresource: 'status' }), name, (live) => {
      checkPreconditions(resource, live, options)
      return evicted(live as Pod, services.clock)
    })
    // The preconditions were met a moment ago, and only this handler has changed the pod since.
    if (preconditions.resourceVersion !== undefined)
      preconditions = { ...preconditions, resourceVersion: String(entry.modRevision) }
  }
  await store.delete(request, name, { ...options, preconditions })
}

const EVICTED: AnyCondition = {
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'EvictionByEvictionAPI',
  message: 'Eviction API: evicting',
}

function evicted(live: Pod, clock: Clock): Pod {
  const pod = deepCopy(live)
  const conditions = (pod.status.conditions ?? []) as AnyCondition[]
  setCondition(conditions, EVICTED, clock)
  pod.status.conditions = conditions as PodCondition[]
  return pod
}

/** A pod that does not run or is terminating needs no budget. */
function needsNoBudget({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined || ['Succeeded', 'Failed', 'Pending'].includes(status.phase ?? '')
}

async function budgetOf(objects: ObjectReader, { metadata }: Pod): Promise<PodDisruptionBudget | undefined> {
  const budgets = await objects.list(PodDisruptionBudgets, metadata.namespace ?? '')
  const covering = budgets.filter(({ spec }) => {
    const selector = asSelector(spec.selector)
    return spec.selector !== undefined && (isEverything(selector) || matchesLabels(selector, metadata.labels ?? {}))
  })
  if (covering.length > 1) {
    const message = 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.'
    throw failure({ code: 500, message })
  }
  return covering[0]
}

/** An unready pod may be exempt by the budget's policy, or if enough healthy pods remain. */
function mayGoUnready({ spec, status }: PodDisruptionBudget, pod: Pod): boolean {
  if (isReady(pod)) return false
  if (spec.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true
  return status.currentHealthy >= status.desiredHealthy && status.desiredHealthy > 0
}

/** Takes one disruption and records the pod, so that the controller counts it. */
async function takeDisruption(view: View, budget: PodDisruptionBudget, pod: Pod, isTry: boolean): Promise<void> {
  if (isTry) return checkBudget(budget)
  const { clock, writer } = view.services
  const { name = '', namespace = '' } = budget.metadata
  await writer.updateStatus(PodDisruptionBudgets, { namespace, name }, (next) => {
    checkBudget(next)
    next.status.disruptionsAllowed -= 1
    next.status.disruptedPods = { ...next.status.disruptedPods, [pod.metadata.name ?? '']: timeOf(clock.now()) }
    return next
  })
}

/** Controllers process fewer unrecorded disruptions than this; more means that none runs. */
const MAX_DISRUPTED = 2000

/** Throws 429 without allowed disruptions, and 403 for an invalid status. */
function checkBudget(budget: PodDisruptionBudget): void {
  const { metadata, status } = budget
  const { name = '' } = metadata
  const forbid = (why: string): never => {
    throw forbiddenError({ group: 'policy', resource: 'poddisruptionbudget' }, name, why)
  }
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) refuse(processing(budget), RETRY_SECONDS)
  if (status.disruptionsAllowed < 0) forbid('pdb disruptions allowed is negative')
  if (Object.keys(status.disruptedPods ?? {}).length > MAX_DISRUPTED)
    forbid('DisruptedPods map too big - too many evictions not confirmed by PDB controller')
  if (status.disruptionsAllowed > 0) return
  const failed = status.conditions?.find(({ type }) => type === 'DisruptionAllowed')
  if (failed?.status === 'False' && failed.reason === 'SyncFailed') {
    const why = `it failed sync: ${failed.message}`
    refuse(`The disruption budget ${name} does not allow evicting pods currently because ${why}`, 0)
  }
  const counts = `needs ${status.desiredHealthy} healthy pods and has ${status.currentHealthy} currently`
  refuse(`The disruption budget ${name} ${counts}`, 0)
}

function processing({ metadata }: PodDisruptionBudget): string {
  return `The disruption budget ${metadata.name} is still being processed by the server.`
}

function refuse(detail: string, retryAfterSeconds: number): never {
  const message = "Cannot evict pod as it would violate the pod's disruption budget."
  const error = tooManyRequestsError(message, retryAfterSeconds)
  const causes = [{ reason: 'DisruptionBudget' as const, message: detail }]
  error.status.details = { ...error.status.details, causes }
  throw error
}
