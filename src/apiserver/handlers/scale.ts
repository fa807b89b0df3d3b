/** `scale`: the number of replicas of a workload, as autoscalers and `kubectl scale` read and write it. */
import { trackUpdate } from '#meta/apply/field-manager.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { invalidOptionsError, updateOptionsQuery, validateUpdateOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import { invalidError } from '#meta/status-errors.ts'
import { nonNegative } from '#meta/validation/rules.ts'

import type { Answer, Call } from '../call.ts'
import type { Entry } from '../registry/entry.ts'
import type { Transform } from '../registry/store.ts'
import { decodeBody, writeRequestOf } from './body.ts'
import { readEntry } from './get.ts'
import { patchScaleBody } from './patch.ts'
import { formOf, type View } from './view.ts'

/** The body of `scale`, whatever the workload. */
const SCALE: GroupVersionKind = { group: 'autoscaling', version: 'v1', kind: 'Scale' }

interface Scale extends KubeObject {
  spec: { replicas?: number }
  status: { replicas: number; selector?: string }
}

type Handler = (call: Call, view: View) => Promise<Answer>

export const scaleHandlers: Readonly<Record<string, Handler>> = {
  get: getScale,
  update: updateScale,
  patch: patchScale,
}

async function getScale(call: Call, view: View): Promise<Answer> {
  const form = formOf(call, 'object')
  return view.representation.value(scaleOf(view, await readEntry(call, view)), form, 200)
}

async function updateScale(call: Call, view: View): Promise<Answer> {
  const options = decodeQuery(updateOptionsQuery, call.query)
  const errors = validateUpdateOptions(options)
  if (errors.length > 0) throw invalidOptionsError('UpdateOptions', errors)
  const scale = (await decodeBody(call, view, SCALE, options.fieldValidation)) as Scale
  const { resourceVersion = '' } = scale.metadata
  return writeScale(call, view, () => scale, { ...options, ...(resourceVersion === '' ? {} : { resourceVersion }) })
}

async function patchScale(call: Call, view: View): Promise<Answer> {
  const { apply, options } = await patchScaleBody(call, view)
  return writeScale(call, view, (live) => apply(live) as Scale, options)
}

interface ScaleTerms {
  readonly dryRun?: readonly string[]
  readonly fieldManager?: string
  readonly resourceVersion?: string
}

async function writeScale(call: Call, view: View, change: (live: Scale) => Scale, terms: ScaleTerms): Promise<Answer> {
  const form = formOf(call, 'object')
  const request = { ...writeRequestOf(call, view, terms), subresource: 'scale' }
  const transform: Transform = (live) => {
    const next = deepCopy(live)
    const scale = change(scaleFrom(view, live))
    const replicas = scale.spec?.replicas ?? 0
    const errors = nonNegative('spec.replicas', replicas)
    if (errors.length > 0) throw invalidError({ group: SCALE.group, kind: 'Scale' }, call.info.name, errors)
    view.resource.scale?.setReplicas(next, replicas)
    return trackUpdate(view.store.fieldRequest(request, live), next)
  }
  // The object is written as a whole: scale is a view of it, and its rules are those of the object.
  const { entry } = await view.store.update(
    { ...request, subresource: '' },
    call.info.name,
    transform,
    terms.resourceVersion === undefined ? {} : { resourceVersion: terms.resourceVersion },
  )
  return view.representation.value(scaleOf(view, entry), form, 200)
}

function scaleOf(view: View, entry: Entry): Scale {
  return scaleFrom(view, entry.object)
}

function scaleFrom({ resource }: View, object: KubeObject): Scale {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
  const rules = resource.scale
  const replicas = rules?.replicas(object) ?? 0
  const selector = rules?.selector(object) ?? ''
  const metadata = { name, namespace, uid, resourceVersion, creationTimestamp } as KubeObject['metadata']
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== undefined)),
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: rules?.statusReplicas(object) ?? 0, ...(selector === '' ? {} : { selector }) },
  }
}
