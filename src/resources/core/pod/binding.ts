/**
 * The `binding` subresource of pods: assigns a pod to a node, once. Labels and annotations of the Binding are copied to
 * the pod; admission adds the node's topology.
 */
import type { Binding, Pod } from '#apis/core/v1.ts'
import { admitBody } from '#apiserver/handlers/admit.ts'
import { decodeBody, otherRequest, settleNamespace, writeRequestOf } from '#apiserver/handlers/body.ts'
import { formOf, type View } from '#apiserver/handlers/view.ts'
import type { PartRules } from '#apiserver/registry/resource.ts'
import { type Answer, type Call, otherwise } from '#component/requests/call.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { createOptionsQuery, invalidOptionsError, validateCreateOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import { badRequestError, conflictError, invalidError } from '#meta/status-errors.ts'
import { timeOf } from '#meta/time.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'

const KIND = { group: '', version: 'v1', kind: 'Binding' }
const BINDINGS = { group: '', resource: 'pods/binding' }

/** A binding may change all its fields: the handler has the rules. */
export const bindingPart: PartRules<Pod> = { prepareUpdate: () => undefined }

/** POST to `pods/NAME/binding`, or to `bindings` with the pod in the body. */
export async function bindPod(call: Call, view: View): Promise<Answer> {
  const form = formOf(call, 'object', false)
  const options = decodeQuery(createOptionsQuery, call.query)
  const optionErrors = validateCreateOptions(options)
  if (optionErrors.length > 0) throw invalidOptionsError('CreateOptions', optionErrors)
  const binding = (await decodeBody(call, view, KIND, options.fieldValidation)) as Binding
  const named = call.info.subresource === '' ? namedInBody(call, binding) : call
  const { name } = named.info
  const own = binding.metadata.name ?? ''
  if (own !== name) throw badRequestError('name in URL does not match name in Binding object')
  const errors = validateBinding(binding)
  if (errors.length > 0) throw invalidError({ group: '', kind: 'Binding' }, name, errors)
  const validate = await admitBody(named, view, KIND, binding)
  await validate()
  const request = otherRequest(writeRequestOf(named, view.representation.kind, options), { isAdmitted: true })
  const { uid = '', resourceVersion = '' } = binding.metadata
  const terms = { ...(uid === '' ? {} : { uid }), ...(resourceVersion === '' ? {} : { resourceVersion }) }
  await view.store.update(request, name, (live) => bound(live as Pod, binding, view.services), terms)
  const success = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } as KubeObject
  return view.representation.value(success, form, 201)
}

/** Equivalent to a call of `pods/NAME/binding`. */
function namedInBody(call: Call, binding: Binding): Call {
  const { name = '' } = binding.metadata
  settleNamespace(binding, call, true)
  if (name === '') throw badRequestError('Name parameter required.')
  // Objects posted to a collection get their uid from the server.
  delete binding.metadata.uid
  return otherwise(call, { info: { ...call.info, subresource: 'binding', name } })
}

function validateBinding({ target }: Binding): FieldError[] {
  return collectErrors(
    (target.kind ?? '') !== '' &&
      target.kind !== 'Node' &&
      fieldPath('target.kind').notSupported(target.kind, ['Node', '<empty>']),
    (target.name ?? '') === '' && fieldPath('target.name').required(),
  )
}

/** The bound pod. Throws 409 if it has a node or is terminating. */
function bound(live: Pod, { target, metadata }: Binding, { clock, isEnabled }: View['services']): Pod {
  const { name = '' } = live.metadata
  const refuse = (why: string): never => {
    throw conflictError(BINDINGS, name, why)
  }
  if (live.metadata.deletionTimestamp !== undefined)
    refuse(`pod ${name} is being deleted, cannot be assigned to a host`)
  if ((live.spec.nodeName ?? '') !== '') refuse(`pod ${name} is already assigned to node "${live.spec.nodeName}"`)
  if ((live.spec.schedulingGates ?? []).length > 0) refuse(`pod ${name} has non-empty .spec.schedulingGates`)
  const pod = deepCopy(live)
  pod.spec.nodeName = target.name ?? ''
  if (metadata.annotations !== undefined)
    pod.metadata.annotations = { ...pod.metadata.annotations, ...metadata.annotations }
  if (metadata.labels !== undefined) pod.metadata.labels = { ...metadata.labels, ...pod.metadata.labels }
  const others = (pod.status.conditions ?? []).filter(({ type }) => type !== 'PodScheduled')
  const condition = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: timeOf(clock.now()),
  }
  pod.status = { ...pod.status, conditions: [...others, condition] }
  if (isEnabled('ClearingNominatedNodeNameAfterBinding')) delete pod.status.nominatedNodeName
  return pod
}
