/**
 * Eviction: a delete that respects disruption budgets. Where a budget covers the pod, one of its allowed disruptions is
 * taken first, guarded by the budget's version; where none is left, the client is told to come back.
 */
import type { Pod } from '#apis/core/v1.ts'
import { type Eviction, type PodDisruptionBudget, PodDisruptionBudgets } from '#apis/policy/v1.ts'
import type { Call } from '#apiserver/call.ts'
import type { Handler } from '#apiserver/dispatch.ts'
import { admitBody } from '#apiserver/handlers/admit.ts'
import { decodeBody, writeRequestOf } from '#apiserver/handlers/body.ts'
import { readEntry } from '#apiserver/handlers/get.ts'
import { formOf, type View } from '#apiserver/handlers/view.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { WriteRequest } from '#apiserver/registry/services.ts'
import { asSelector } from '#meta/label-selector.ts'
import { isEverything, matchesLabels } from '#meta/labels.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { type DeleteOptions, invalidOptionsError, validateDeleteOptions } from '#meta/options.ts'
import { badRequestError, failure, forbiddenError, tooManyRequestsError } from '#meta/status-errors.ts'
import { timeOf } from '#meta/time.ts'
import { isReady } from '#model/pods.ts'

const KIND = {
  group: 'policy',
  version: 'v1',
  kind: 'Eviction',
  acceptsVersion: (version: string): boolean => version === OLD_VERSION,
}
/** It is not served any more, but clients still send it, and its fields are the same. */
const OLD_VERSION = 'v1beta1'
const RETRY_SECONDS = 10

/** POST to `pods/NAME/eviction`. */
export function createEvictionHandler(registry: Registry): Handler {
  return async (call, view) => {
    const form = formOf(call, 'object', false)
    const fieldValidation = call.query.get('fieldValidation') ?? undefined
    const eviction = (await decodeBody(call, readingOld(view), KIND, fieldValidation)) as Eviction
    const own = eviction.metadata.name ?? ''
    if (own !== call.info.name) throw badRequestError('name in URL does not match name in Eviction object')
    const options = optionsOf(eviction, call)
    const validate = await admitBody(call, view, KIND, eviction)
    await validate()
    await evict(call, view, registry, options)
    const success = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } as KubeObject
    return view.representation.value(success, form, 201)
  }
}

function readingOld(view: View): View {
  const { schemaFor } = view.services
  const services: View['services'] = {
    ...view.services,
    schemaFor: (gvk) => schemaFor(gvk.group === KIND.group && gvk.version === OLD_VERSION ? KIND : gvk),
  }
  return { ...view, services }
}

function optionsOf({ deleteOptions = {} }: Eviction, call: Call): DeleteOptions {
  const dryRun = call.query.getAll('dryRun')
  const options = { ...deleteOptions, ...(dryRun.length === 0 ? {} : { dryRun }) } as DeleteOptions
  const errors = validateDeleteOptions(options)
  if (errors.length > 0) throw invalidOptionsError('DeleteOptions', errors)
  return options
}

async function evict(call: Call, view: View, registry: Registry, options: DeleteOptions): Promise<void> {
  const pod = (await readEntry(call, view)).object as Pod
  const request = writeRequestOf(call, view, options.dryRun === undefined ? {} : { dryRun: options.dryRun })
  const budget = needsNoBudget(pod) ? undefined : await budgetOf(registry, pod)
  if (budget !== undefined && !mayGoUnready(budget, pod)) await takeDisruption(registry, request, budget, pod)
  // The pod that was looked at, and no other of its name.
  const preconditions = { ...options.preconditions, uid: options.preconditions?.uid ?? pod.metadata.uid ?? '' }
  await view.store.delete(request, call.info.name, { ...options, preconditions })
}

/** Nothing is disrupted by removing what does not run, or is going already. */
function needsNoBudget({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined || ['Succeeded', 'Failed', 'Pending'].includes(status.phase ?? '')
}

async function budgetOf(registry: Registry, { metadata }: Pod): Promise<PodDisruptionBudget | undefined> {
  const budgets = await registry.list(PodDisruptionBudgets, metadata.namespace ?? '')
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

/** A pod that is not ready does not count, where the budget says so or has enough healthy ones without it. */
function mayGoUnready({ spec, status }: PodDisruptionBudget, pod: Pod): boolean {
  if (isReady(pod)) return false
  if (spec.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true
  return status.currentHealthy >= status.desiredHealthy && status.desiredHealthy > 0
}

/** Takes one of the budget's disruptions and notes the pod, so that the controller knows it as gone. */
async function takeDisruption(
  registry: Registry,
  request: WriteRequest,
  budget: PodDisruptionBudget,
  pod: Pod,
): Promise<void> {
  const store = registry.storeOf(PodDisruptionBudgets)
  const { name = '', namespace = '' } = budget.metadata
  const { clock } = registry.services
  const writing = { ...request, gvk: PodDisruptionBudgets, namespace, subresource: 'status' }
  await store?.update(writing, name, (live) => {
    const next = deepCopy(live) as PodDisruptionBudget
    checkBudget(next)
    next.status.disruptionsAllowed -= 1
    next.status.disruptedPods = { ...next.status.disruptedPods, [pod.metadata.name ?? '']: timeOf(clock.now()) }
    return next
  })
}

/** Controllers note disruptions faster than this many; more means that nobody does. */
const MAX_DISRUPTED = 2000

/** Throws 429 where the budget has nothing to spare, and 403 where its status cannot be. */
function checkBudget({ metadata, status }: PodDisruptionBudget): void {
  const { name = '' } = metadata
  const forbid = (why: string): never => {
    throw forbiddenError({ group: 'policy', resource: 'poddisruptionbudget' }, name, why)
  }
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0))
    refuse(`The disruption budget ${name} is still being processed by the server.`, RETRY_SECONDS)
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

function refuse(detail: string, retryAfterSeconds: number): never {
  const message = "Cannot evict pod as it would violate the pod's disruption budget."
  const error = tooManyRequestsError(message, retryAfterSeconds)
  const causes = [{ reason: 'DisruptionBudget' as const, message: detail }]
  error.status.details = { ...error.status.details, causes }
  throw error
}
