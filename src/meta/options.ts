/** The request options of every verb: types, query strings and validation. */
import { decodeQuery, type QueryShape } from './query.ts'
import { invalidError } from './status-errors.ts'
import { type StatusError } from './status.ts'
import { asJson, collectErrors, type FieldError, fieldPath } from './validation/field-path.ts'
import { validateFieldManager } from './validation/object-meta.ts'

export interface GetOptions {
  resourceVersion?: string
}

export interface ListOptions {
  labelSelector?: string
  fieldSelector?: string
  watch?: boolean
  allowWatchBookmarks?: boolean
  resourceVersion?: string
  resourceVersionMatch?: string
  timeoutSeconds?: number
  /** A negative value means no limit. */
  limit?: number
  continue?: string
  sendInitialEvents?: boolean
  shardSelector?: string
}

export interface Preconditions {
  uid?: string
  resourceVersion?: string
}

export interface DeleteOptions {
  gracePeriodSeconds?: number
  preconditions?: Preconditions
  orphanDependents?: boolean
  propagationPolicy?: string
  dryRun?: string[]
  ignoreStoreReadErrorWithClusterBreakingPotential?: boolean
}

export interface CreateOptions {
  dryRun?: string[]
  fieldManager?: string
  fieldValidation?: string
}

export type UpdateOptions = CreateOptions

export interface PatchOptions extends CreateOptions {
  /** Only for apply: takes over fields of other managers. */
  force?: boolean
}

export interface TableOptions {
  includeObject?: string
}

export const getOptionsQuery: QueryShape<GetOptions> = { resourceVersion: 'string' }

export const listOptionsQuery: QueryShape<ListOptions> = {
  labelSelector: 'string',
  fieldSelector: 'string',
  watch: 'bool',
  allowWatchBookmarks: 'bool',
  resourceVersion: 'string',
  resourceVersionMatch: 'string',
  timeoutSeconds: 'int?',
  limit: 'int',
  continue: 'string',
  sendInitialEvents: 'bool?',
  shardSelector: 'string',
}

export const createOptionsQuery: QueryShape<CreateOptions> = {
  dryRun: 'strings',
  fieldManager: 'string',
  fieldValidation: 'string',
}

export const updateOptionsQuery: QueryShape<UpdateOptions> = { ...createOptionsQuery }

export const patchOptionsQuery: QueryShape<PatchOptions> = { ...createOptionsQuery, force: 'bool?' }

export const tableOptionsQuery: QueryShape<TableOptions> = { includeObject: 'string' }

/** Preconditions have another form in a query. */
export const deleteOptionsQuery: QueryShape<Omit<DeleteOptions, 'preconditions'>> = {
  gracePeriodSeconds: 'int?',
  orphanDependents: 'bool?',
  propagationPolicy: 'string?',
  dryRun: 'strings',
  ignoreStoreReadErrorWithClusterBreakingPotential: 'bool?',
}

/** Options of a delete without a body: `uid` and `resourceVersion` are its preconditions. */
export function decodeDeleteOptions(query: URLSearchParams): DeleteOptions {
  const options: DeleteOptions = decodeQuery(deleteOptionsQuery, query)
  const preconditions = decodeQuery<Preconditions>({ uid: 'string', resourceVersion: 'string' }, query)
  return Object.keys(preconditions).length === 0 ? options : { ...options, preconditions }
}

/** The 422 error of invalid options. */
export function invalidOptionsError(
  kind: 'ListOptions' | 'DeleteOptions' | 'CreateOptions' | 'UpdateOptions' | 'PatchOptions' | 'TableOptions',
  errors: readonly FieldError[],
): StatusError {
  return invalidError({ group: 'meta.k8s.io', kind }, '', errors)
}

/** Options of a list or a watch. */
export function validateListOptions(options: ListOptions, hasWatchList: boolean = true): FieldError[] {
  return options.watch ? validateWatchOptions(options, hasWatchList) : validatePlainListOptions(options)
}

function validatePlainListOptions(options: ListOptions): FieldError[] {
  const { resourceVersionMatch: match, resourceVersion = '', sendInitialEvents } = options
  const errors: FieldError[] = []
  if (match !== undefined) {
    if (resourceVersion === '') errors.push(matchForbidden('unless resourceVersion is provided'))
    if (options.continue !== undefined) errors.push(matchForbidden('when continue is provided'))
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push(fieldPath('resourceVersionMatch').notSupported(asJson(match), ['Exact', 'NotOlderThan', '']))
    }
    if (match === 'Exact' && resourceVersion === '0') {
      const detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
      errors.push(fieldPath('resourceVersionMatch').forbidden(detail))
    }
  }
  if (sendInitialEvents !== undefined) {
    errors.push(fieldPath('sendInitialEvents').forbidden('sendInitialEvents is forbidden for list'))
  }
  return errors
}

function validateWatchOptions(options: ListOptions, hasWatchList: boolean): FieldError[] {
  const { resourceVersionMatch: match, sendInitialEvents } = options
  const errors: FieldError[] = []
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    const detail = 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'
    errors.push(fieldPath('resourceVersionMatch').forbidden(detail))
  }
  if (sendInitialEvents !== undefined && !hasWatchList) {
    const detail = 'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled'
    errors.push(fieldPath('sendInitialEvents').forbidden(detail))
  }
  if (match === undefined && sendInitialEvents === undefined && isFromStart(options)) {
    // Upstream treats this as a request for initial events, which has a match.
    return options.continue === undefined ? errors : [matchForbidden('when continue is provided')]
  }
  if (match === undefined) return errors
  if (sendInitialEvents === undefined) errors.push(matchForbidden('for watch unless sendInitialEvents is provided'))
  if (match !== 'NotOlderThan')
    errors.push(fieldPath('resourceVersionMatch').notSupported(asJson(match), ['NotOlderThan']))
  if (options.continue !== undefined) errors.push(matchForbidden('when continue is provided'))
  return errors
}

function isFromStart({ resourceVersion = '' }: ListOptions): boolean {
  return resourceVersion === '' || resourceVersion === '0'
}

function matchForbidden(when: string): FieldError {
  return fieldPath('resourceVersionMatch').forbidden(`resourceVersionMatch is forbidden ${when}`)
}

const policies = ['Foreground', 'Background', 'Orphan']

export function validateDeleteOptions(options: DeleteOptions): FieldError[] {
  const { propagationPolicy: policy, orphanDependents, dryRun } = options
  return collectErrors(
    policy !== undefined &&
      orphanDependents !== undefined &&
      fieldPath('propagationPolicy').invalid(
        asJson(policy),
        'orphanDependents and deletionPropagation cannot be both set',
      ),
    policy !== undefined &&
      !policies.includes(policy) &&
      fieldPath('propagationPolicy').notSupported(asJson(policy), [...policies, 'nil']),
    validateDryRun(dryRun),
    validateIgnoreStoreReadError(options),
  )
}

export function validateCreateOptions(options: CreateOptions): FieldError[] {
  return [
    ...validateFieldManager(fieldPath('fieldManager'), options.fieldManager ?? ''),
    ...validateDryRun(options.dryRun),
    ...validateFieldValidation(options.fieldValidation),
  ]
}

export function validateUpdateOptions(options: UpdateOptions): FieldError[] {
  return validateCreateOptions(options)
}

/** `apply` for server-side apply, which requires a manager; other patches have no force. */
export function validatePatchOptions(options: PatchOptions, { apply }: { readonly apply: boolean }): FieldError[] {
  return collectErrors(
    apply && (options.fieldManager ?? '') === '' && fieldPath('fieldManager').required('is required for apply patch'),
    !apply && options.force !== undefined && fieldPath('force').forbidden('may not be specified for non-apply patch'),
    validateCreateOptions(options),
  )
}

export function validateTableOptions({ includeObject }: TableOptions): FieldError[] {
  if (includeObject === undefined || ['Metadata', 'Object', 'None', ''].includes(includeObject)) return []
  const detail = "must be 'Metadata', 'Object', 'None', or empty"
  return [fieldPath('includeObject').invalid(asJson(includeObject), detail)]
}

function validateDryRun(dryRun: readonly string[] = []): FieldError[] {
  return dryRun.every((value) => value === 'All') ? [] : [fieldPath('dryRun').notSupported(dryRun, ['All'])]
}

function validateFieldValidation(value = ''): FieldError[] {
  const known = ['', 'Ignore', 'Strict', 'Warn']
  return known.includes(value) ? [] : [fieldPath('fieldValidation').notSupported(value, known)]
}

/** Deleting an unreadable object excludes options that would need to read it. */
function validateIgnoreStoreReadError(options: DeleteOptions): FieldError[] {
  if (options.ignoreStoreReadErrorWithClusterBreakingPotential !== true) return []
  const path = fieldPath('ignoreStoreReadErrorWithClusterBreakingPotential')
  const others = ['dryRun', 'propagationPolicy', 'orphanDependents', 'gracePeriodSeconds', 'preconditions'] as const
  return others
    .filter((name) => options[name] !== undefined && (name !== 'dryRun' || options.dryRun?.length !== 0))
    .map((name) => path.invalid(true, `cannot be set together with .${name}`))
}
