/**
 * Handles the subresource `scale`: the replicas of a workload. A write converts the workload to a Scale, applies the
 * request to the Scale, and writes the workload.
 */
import type { Answer, Call } from '#component/requests/call.ts'
import type { Form } from '#component/requests/response-form.ts'
import { type FieldRequest, trackUpdate } from '#meta/apply/field-manager.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { invalidOptionsError, updateOptionsQuery, validateUpdateOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import { conflictError, internalError, invalidError, notFoundError } from '#meta/status-errors.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { nameIsSubdomain } from '#meta/validation/names.ts'
import { validateFinalizerNames, validateObjectMeta } from '#meta/validation/object-meta.ts'
import { nonNegative } from '#meta/validation/rules.ts'

import { ageColumn, nameColumn } from '../registry/columns.ts'
import type { Column, ScaleRules } from '../registry/resource.ts'
import { SCALE, type Scale, scaleForWrite, scaleOf, withScale } from '../registry/scale.ts'
import { BUILT_IN } from '../registry/shapes.ts'
import type { Transform, UpdateTerms } from '../registry/store.ts'
import { answerWithValue } from './answers.ts'
import { decodeBody, settleNamespace, type WriteOptions, writeRequestOf } from './body.ts'
import { readEntry, refuseExport } from './get.ts'
import { readPatch } from './patch.ts'
import { columnsOf, includedObject, rowObject, tableObject } from './table.ts'
import { settleName } from './update.ts'
import { expectedVersion } from './versions.ts'
import { formFor, type View } from './view.ts'

type Handler = (call: Call, view: View) => Promise<Answer>

export const scaleHandlers: Readonly<Record<string, Handler>> = {
  get: getScale,
  update: updateScale,
  patch: patchScale,
}

async function getScale(call: Call, view: View): Promise<Answer> {
  const form = formFor(call, view, 'object')
  refuseExport(call)
  const { object } = view.representation.look(await readEntry(call, view))
  const rules = rulesOf(view)
  const obstacle = rules.obstacle?.(object)
  if (obstacle !== undefined) throw internalError(new Error(obstacle))
  return answer(call, view, scaleOf(rules, object), form)
}

async function updateScale(call: Call, view: View): Promise<Answer> {
  const options = decodeQuery(updateOptionsQuery, call.query)
  const errors = validateUpdateOptions(options)
  if (errors.length > 0) throw invalidOptionsError('UpdateOptions', errors)
  const scale = (await decodeBody(call, view, SCALE, options.fieldValidation)) as Scale
  settleNamespace(scale, call, SCALE.namespaced)
  settleName(scale, call)
  const { uid = '' } = scale.metadata
  const resourceVersion = expectedVersion(scale.metadata)
  const terms = { ...(resourceVersion !== '' && { resourceVersion }), ...(uid !== '' && { uid }) }
  const change = (_live: Scale, fields: FieldRequest): Scale => trackUpdate(fields, scale)
  return writeScale(call, view, { options, terms, change })
}

async function patchScale(call: Call, view: View): Promise<Answer> {
  const { group, plural } = view.resource.kind
  const resource = { group, resource: plural }
  const { options, isApply, change } = await readPatch(call, view.services, {
    kind: SCALE,
    resource,
    schemaFor: BUILT_IN.schemaFor,
    isOfCustom: view.resource.custom !== undefined,
  })
  const tracked = async (live: Scale, fields: FieldRequest): Promise<Scale> =>
    trackUpdate(fields, await change(live, fields))
  return writeScale(call, view, { options, terms: {}, change: isApply ? change : tracked })
}

interface ScaleWrite {
  readonly options: WriteOptions
  readonly terms: UpdateTerms
  /** The requested Scale, with its fields tracked. */
  readonly change: (live: Scale, fields: FieldRequest) => Promise<Scale> | Scale
}

async function writeScale(call: Call, view: View, { options, terms, change }: ScaleWrite): Promise<Answer> {
  const form = formFor(call, view, 'object')
  const rules = rulesOf(view)
  const { kind } = view.representation
  const { name } = call.info
  const transform: Transform = async (live, fields) => {
    const shown = scaleForWrite(rules, live, kind)
    const scale = await change(shown, scaleFields(fields, shown))
    checkScale(view, scale, live)
    return withScale(rules, live, scale, kind)
  }
  const request = writeRequestOf(call, kind, options)
  const { entry } = await storeOf(view).update(request, name, transform, { ...terms, isTracked: true })
  return answer(call, view, scaleOf(rules, view.representation.look(entry).object), form)
}

/** Validates the Scale; the workload is validated when it is written. */
function checkScale(view: View, { metadata, spec }: Scale, live: KubeObject): void {
  const { name = '', uid = '' } = live.metadata
  const errors = [
    ...validateObjectMeta(metadata, { namespaced: true, name: nameIsSubdomain }),
    ...validateFinalizerNames(fieldPath('metadata.finalizers'), metadata.finalizers),
    // The rules of a custom resource name the field by its path.
    ...(view.resource.custom === undefined ? nonNegative(fieldPath('spec.replicas'), spec?.replicas) : []),
  ]
  if (errors.length > 0) throw invalidError(SCALE, name, errors)
  const expectedUid = metadata.uid ?? ''
  if (expectedUid === '' || expectedUid === uid) return
  const { group, plural } = view.resource.kind
  const why = `Precondition failed: UID in precondition: ${expectedUid}, UID in object meta: ${uid}`
  throw conflictError({ group, resource: `${plural}/scale` }, name, why)
}

/** Scale has one version, and a request may set all its fields. */
function scaleFields(fields: FieldRequest, live: Scale): FieldRequest {
  const schema = BUILT_IN.schemaFor(SCALE)
  return {
    ...fields,
    kind: {
      typeOf: (apiVersion) => (apiVersion === apiVersionOf(SCALE) && schema !== undefined ? { schema } : undefined),
      convert: (object) => object,
    },
    live,
  }
}

const COLUMNS: readonly Column<Scale>[] = [
  { ...nameColumn, format: '' },
  { name: 'Desired', type: 'integer', value: ({ spec }) => spec?.replicas ?? 0 },
  { name: 'Available', type: 'integer', value: ({ status }) => status?.replicas ?? 0 },
  ageColumn,
]

function answer(call: Call, { representation, services }: View, scale: Scale, form: Form): Answer {
  const { as } = form.negotiated
  if (as?.kind !== 'Table') return answerWithValue(representation, scale, { form, status: 200 })
  const terms = { include: includedObject(call), partial: as }
  const cells = COLUMNS.map((column) => column.value(scale, services.clock.now()))
  const row = { cells, object: rowObject(terms, () => scale) }
  const { resourceVersion = '' } = scale.metadata
  const columns = columnsOf({ columns: COLUMNS })
  return representation.value(tableObject(columns, [row], { resourceVersion }, as.version), form, 200)
}

function rulesOf({ resource }: View): ScaleRules<KubeObject> {
  if (resource.scale === undefined) throw notScaled(resource.kind)
  return resource.scale
}

function storeOf({ resource, scaleStore }: View): NonNullable<View['scaleStore']> {
  if (scaleStore === undefined) throw notScaled(resource.kind)
  return scaleStore
}

/** Unreachable: discovery lists `scale` only for kinds with rules. */
function notScaled({ group, plural }: View['resource']['kind']): Error {
  return notFoundError({ group, resource: `${plural}/scale` }, '')
}
