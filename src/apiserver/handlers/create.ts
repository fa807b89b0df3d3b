/** POST: creates an object. */
import type { Answer, Call } from '#component/requests/call.ts'
import { createOptionsQuery, invalidOptionsError, validateCreateOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'

import { answerWithObject } from './answers.ts'
import { decodeBody, settleNamespace, writeRequestOf } from './body.ts'
import { formFor, type View } from './view.ts'

export async function createObject(call: Call, view: View): Promise<Answer> {
  const form = formFor(call, view, 'object')
  const options = decodeQuery(createOptionsQuery, call.query)
  const errors = validateCreateOptions(options)
  if (errors.length > 0) throw invalidOptionsError('CreateOptions', errors)
  const { kind } = view.representation
  const object = await decodeBody(call, view, kind, options.fieldValidation)
  settleNamespace(object, call, kind.namespaced)
  const request = writeRequestOf(call, kind, options)
  const { entry } = await view.store.create(request, object)
  return answerWithObject(call, view, entry, { form, status: 201 })
}
