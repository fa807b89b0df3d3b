import { trackUpdate } from '#meta/apply/field-manager.ts'
import type { KubeObject } from '#meta/object.ts'
import { invalidOptionsError, updateOptionsQuery, validateUpdateOptions } from '#meta/options.ts'
/** PUT: the whole object anew, or the part of it that a subresource is. */
import { decodeQuery } from '#meta/query.ts'
import { badRequestError, invalidError } from '#meta/status-errors.ts'
import { invalid, verbatim } from '#meta/validation/field-error.ts'

import type { Answer, Call } from '../call.ts'
import type { Transform } from '../registry/store.ts'
import { decodeBody, settleNamespace, writeRequestOf } from './body.ts'
import { applyDefaults } from './defaults.ts'
import { formOf, type View } from './view.ts'

export async function updateObject(call: Call, view: View): Promise<Answer> {
  const form = formOf(call, 'object')
  const options = decodeQuery(updateOptionsQuery, call.query)
  const errors = validateUpdateOptions(options)
  if (errors.length > 0) throw invalidOptionsError('UpdateOptions', errors)
  const { kind } = view.representation
  const object = await decodeBody(call, view, kind, options.fieldValidation)
  settleNamespace(object, call, kind.namespaced)
  settleName(object, call)
  applyDefaults(view, object)
  const { resourceVersion = '', uid = '' } = object.metadata
  if (resourceVersion === '' && view.resource.putNeedsVersion === true) throw versionRequired(view, call.info.name)
  const terms = {
    mayCreate: view.resource.putCreates === true && call.info.subresource === '',
    ...(resourceVersion === '' ? {} : { resourceVersion }),
    ...(uid === '' ? {} : { uid }),
  }
  const request = writeRequestOf(call, view, options)
  const transform: Transform = (live) => trackUpdate(view.store.fieldRequest(request, live), object)
  const { entry, created } = await view.store.update(request, call.info.name, transform, terms)
  return view.representation.object(entry, form, created ? 201 : 200)
}

function settleName({ metadata }: KubeObject, { info }: Call): void {
  const own = metadata.name ?? ''
  if (own !== '' && own !== info.name) {
    throw badRequestError(`the name of the object (${own}) does not match the name on the URL (${info.name})`)
  }
  metadata.name = info.name
}

function versionRequired({ resource }: View, name: string): Error {
  const { group, kind } = resource.kind
  return invalidError({ group, kind }, name, [
    invalid('metadata.resourceVersion', verbatim('0'), 'must be specified for an update'),
  ])
}
