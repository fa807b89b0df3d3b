/** Explains why a Service has no endpoints: its selector, its pods, or its ports. */
import { type Pod, Pods, type Service, Services } from '#apis/core/v1.ts'
import { editDistance } from '#lib/nearest.ts'
import { matchesLabels, selectorFromLabels } from '#meta/labels.ts'
import { isReady, isTerminal } from '#model/pods.ts'
import { targetPortOf } from '#model/services.ts'

import { countText, someOf } from '../amount-text.ts'
import { type Explainer, isOf } from '../explainer.ts'
import { type Finding, hiddenStep, isNotKnown, nameOf, notKnown, type Step } from '../explanation.ts'
import { HIDDEN, type Reader } from '../reader.ts'
import { whyPod } from './why-pod.ts'

export const endpoints: Explainer = {
  name: 'endpoints',
  applies: (target) => isOf(target, Services),
  explain: ({ object }, reader) => whyNoEndpoints(object as Service, reader),
}

interface ServiceCase {
  readonly service: Service
  readonly reader: Reader
  /** `Service default/web has no endpoints because`. */
  readonly head: string
}

async function whyNoEndpoints(service: Service, reader: Reader): Promise<Finding> {
  const named = `Service ${nameOf(service)}`
  const one = { service, reader, head: `${named} has no endpoints because` }
  const { selector = {}, type } = service.spec
  if (type === 'ExternalName') return notKnown(`no explainer finds anything wrong with ${named}: it is an ExternalName`)
  if (Object.keys(selector).length === 0) {
    const why = `${named} has no selector, so another program writes its EndpointSlices`
    return notKnown(why, [stepOf(one, 'has no selector', 'spec.selector')])
  }
  const pods = await reader.list(Pods, { namespace: service.metadata.namespace ?? '' })
  if (pods === HIDDEN) return notKnown(`you may not list the pods of ${named}`, [hiddenStep()])
  const living = pods.filter((pod) => !isTerminal(pod))
  const selected = living.filter(({ metadata }) => matchesLabels(selectorFromLabels(selector), metadata.labels))
  if (selected.length === 0) return whyNoPods(one, living)
  const portless = whyNoPort(one, selected)
  if (portless !== undefined) return portless
  const ready = selected.filter((pod) => isReady(pod) || service.spec.publishNotReadyAddresses === true)
  if (ready.length > 0)
    return notKnown(
      `no explainer finds anything wrong with ${named}: ${countText(ready.length, 'ready pod')} match its selector`,
    )
  const [first] = selected
  const inner = await whyPod(first as Pod, reader)
  const count =
    selected.length === 1 ? 'the only pod that it selects is not ready' : `none of its ${selected.length} pods is ready`
  const step = stepOf(one, `selects ${someOf(selected.map(nameOf))}`, 'spec.selector')
  const verdict = isNotKnown(inner) ? `${one.head} ${count}` : `${one.head} ${count}: ${inner.verdict}`
  return { verdict, steps: [step, ...inner.steps], wouldHelp: inner.wouldHelp }
}

function stepOf({ service, reader }: ServiceCase, did: string, ...fieldPaths: readonly string[]): Step {
  return {
    revision: service.metadata.resourceVersion ?? '',
    actor: 'endpointslice-controller',
    did,
    object: `services/${nameOf(service)}`,
    because: [],
    evidence: reader.cite(Services, service, ...fieldPaths),
    certainty: 'recomputed',
  }
}

/** The pod that lacks the fewest labels of the selector, with values that are spelled most alike. */
function whyNoPods(one: ServiceCase, pods: readonly Pod[]): Finding {
  const { service, head } = one
  const wanted = Object.entries(service.spec.selector ?? {})
  const selector = wanted.map(([key, value]) => `${key}=${value}`).join(',')
  const step = stepOf(one, `finds no pod with ${selector}`, 'spec.selector')
  const [nearest] = pods
    .map((pod) => missOf(pod, wanted))
    .filter(({ missing, edits }) => missing.length < wanted.length || edits <= MAX_EDITS)
    .toSorted((a, b) => a.missing.length - b.missing.length || a.edits - b.edits)
  if (nearest === undefined)
    return { verdict: `${head} no pod in its namespace has the labels ${selector}`, steps: [step], wouldHelp: [] }
  const differences = nearest.missing.map(([key, value]) => {
    const actual = nearest.pod.metadata.labels?.[key]
    return actual === undefined ? `no label ${key}=${value}` : `${key}=${actual} instead of ${key}=${value}`
  })
  const fields = nearest.missing.map(([key]) => `metadata.labels[${key}]`)
  const nearStep: Step = {
    ...step,
    did: `skips ${nameOf(nearest.pod)}, which has ${differences.join(' and ')}`,
    object: `pods/${nameOf(nearest.pod)}`,
    evidence: one.reader.cite(Pods, nearest.pod, ...fields),
  }
  return {
    verdict: `${head} no pod has the labels ${selector}; the nearest, ${nameOf(nearest.pod)}, has ${differences.join(' and ')}`,
    steps: [step, nearStep],
    wouldHelp: ['the same labels in spec.selector of the Service and in the pods'],
  }
}

/** Values with more differing letters in all are no misspellings. */
const MAX_EDITS = 3

interface Miss {
  readonly pod: Pod
  readonly missing: readonly (readonly [key: string, value: string])[]
  readonly edits: number
}

function missOf(pod: Pod, wanted: readonly (readonly [key: string, value: string])[]): Miss {
  const { labels = {} } = pod.metadata
  const missing = wanted.filter(([key, value]) => labels[key] !== value)
  const edits = missing.reduce((sum, [key, value]) => sum + editsOf(value, labels[key]), 0)
  return { pod, missing, edits }
}

/** A missing label is no misspelling. */
function editsOf(value: string, actual: string | undefined): number {
  return actual === undefined ? MAX_EDITS + 1 : editDistance(value, actual)
}

/** A port name that no container has. */
function whyNoPort(one: ServiceCase, pods: readonly Pod[]): Finding | undefined {
  const { service, head } = one
  const { ports = [] } = service.spec
  const missing = ports.filter((port) => pods.every((pod) => targetPortOf(pod, port) === undefined))
  const [port] = missing
  if (port === undefined || missing.length < ports.length) return undefined
  const names = new Set(
    pods.flatMap(({ spec }) => spec.containers.flatMap(({ ports: own = [] }) => own.flatMap(({ name }) => name ?? []))),
  )
  const known = names.size === 0 ? 'their containers name no port' : `their containers name ${[...names].join(', ')}`
  return {
    verdict: `${head} no container of its pods has a port named ${port.targetPort}: ${known}`,
    steps: [stepOf(one, `finds no port named ${port.targetPort} in ${countText(pods.length, 'pod')}`, 'spec.ports')],
    wouldHelp: [`name a port of the pods in spec.ports of the Service, or use its number`],
  }
}
