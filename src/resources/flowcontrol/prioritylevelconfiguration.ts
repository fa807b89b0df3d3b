/** The PriorityLevelConfiguration resource: the concurrency of a level, and the handling of excess requests. */
import {
  type ExemptPriorityLevelConfiguration,
  type LimitedPriorityLevelConfiguration,
  type LimitResponse,
  type PriorityLevelConfiguration,
  PriorityLevelConfigurations,
  type PriorityLevelConfigurationSpec,
  type QueuingConfiguration,
} from '#apis/flowcontrol/v1.ts'
import { mandatoryPriorityLevels } from '#apiserver/fairness/default-objects.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import type { TableCell } from '#meta/table.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'

import { keepUid, validateStatusConditions } from './conditions.ts'

const EXEMPT = 'exempt'
/** An annotation of v1beta3 that distinguishes zero from unset. */
const ZERO_SHARES_ANNOTATION = 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares'

const DEFAULT_SHARES = 30
const defaultQueuing = { handSize: 8, queues: 64, queueLengthLimit: 50 } as const

export const priorityLevelConfiguration: Resource<PriorityLevelConfiguration> =
  defineResource<PriorityLevelConfiguration>({
    kind: PriorityLevelConfigurations,
    metadataRules: { update: ['whole'] },
    generation: 'spec',
    applyDefaults({ spec: { exempt, limited } }) {
      if (exempt !== undefined) {
        exempt.nominalConcurrencyShares ??= 0
        exempt.lendablePercent ??= 0
      }
      if (limited === undefined) return
      limited.nominalConcurrencyShares ??= DEFAULT_SHARES
      limited.lendablePercent ??= 0
      const { queuing } = limited.limitResponse
      if (queuing === undefined) return
      for (const name of ['handSize', 'queues', 'queueLengthLimit'] as const) queuing[name] ||= defaultQueuing[name]
    },
    validate: validateLevel,
    status: { prepareUpdate: keepUid, validateUpdate: ({ status }) => validateStatusConditions(status) },
    columns: [
      nameColumn,
      { name: 'Type', value: ({ spec }) => spec.type },
      {
        name: 'NominalConcurrencyShares',
        value: ({ spec }) => (spec.limited === undefined ? '<none>' : (spec.limited.nominalConcurrencyShares ?? 0)),
      },
      { name: 'Queues', value: queuingCell('queues') },
      { name: 'HandSize', value: queuingCell('handSize') },
      { name: 'QueueLengthLimit', value: queuingCell('queueLengthLimit') },
      ageColumn,
    ],
  })

function queuingCell(name: keyof QueuingConfiguration): (level: PriorityLevelConfiguration) => TableCell {
  return ({ spec }) => spec.limited?.limitResponse.queuing?.[name] ?? '<none>'
}

function validateLevel({ metadata, spec, status }: PriorityLevelConfiguration): FieldError[] {
  const { name = '', annotations = {} } = metadata
  return collectErrors(
    Object.hasOwn(annotations, ZERO_SHARES_ANNOTATION) &&
      fieldPath('metadata.annotations').forbidden(`annotation '${ZERO_SHARES_ANNOTATION}' is forbidden`),
    validateSpec(name, spec),
    validateMandatory(name, spec),
    validateStatusConditions(status),
  )
}

function validateMandatory(name: string, spec: PriorityLevelConfigurationSpec): FieldError[] {
  const fixed = mandatoryPriorityLevels.find(({ metadata }) => metadata.name === name)?.spec
  if (fixed === undefined) return []
  const isExempt = name === EXEMPT
  const { exempt: _, ...rest } = spec
  if (semanticEqual(isExempt ? { ...rest, exempt: fixed.exempt } : spec, fixed)) return []
  const part = isExempt ? " except the 'spec.exempt' field" : ''
  return [fieldPath('spec').invalid(spec, `spec of '${name}'${part} must equal the fixed value`)]
}

const types = ['Exempt', 'Limited']

function validateSpec(name: string, { type, limited, exempt }: PriorityLevelConfigurationSpec): FieldError[] {
  const errors: FieldError[] = []
  if ((name === EXEMPT) !== (type === 'Exempt')) {
    errors.push(fieldPath('spec.type').invalid(asJson(type), "must be 'Exempt' if and only if `name` is 'exempt'"))
  }
  if (type === 'Exempt') {
    if (limited !== undefined)
      errors.push(fieldPath('spec.limited').forbidden('must be nil if the type is not Limited'))
    return collectErrors(errors, exempt !== undefined && validateShares(fieldPath('spec.exempt'), exempt))
  }
  if (type !== 'Limited') {
    return [
      ...errors,
      type === '' ? fieldPath('spec.type').required() : fieldPath('spec.type').notInSet(asJson(type), types),
    ]
  }
  if (exempt !== undefined) errors.push(fieldPath('spec.exempt').forbidden('must be nil if the type is Limited'))
  if (limited === undefined)
    return [...errors, fieldPath('spec.limited').required('must not be empty when type is Limited')]
  return [...errors, ...validateLimited(limited)]
}

function validateLimited(limited: LimitedPriorityLevelConfiguration): FieldError[] {
  const { limitResponse, borrowingLimitPercent: borrowing = 0 } = limited
  const [shares, lendable] = [
    validateCount(fieldPath('spec.limited'), limited),
    validateLendable(fieldPath('spec.limited'), limited),
  ]
  return collectErrors(
    shares,
    validateResponse(fieldPath('spec.limited.limitResponse'), limitResponse),
    lendable,
    borrowing < 0 &&
      fieldPath('spec.limited.borrowingLimitPercent').invalid(
        borrowing,
        'if specified, must be a non-negative integer',
      ),
  )
}

type ConcurrencyShares = ExemptPriorityLevelConfiguration | LimitedPriorityLevelConfiguration

function validateShares(path: FieldPath, sharing: ConcurrencyShares): FieldError[] {
  return [...validateCount(path, sharing), ...validateLendable(path, sharing)]
}

function validateCount(path: FieldPath, { nominalConcurrencyShares: shares }: ConcurrencyShares): FieldError[] {
  if ((shares ?? 0) >= 0) return []
  return [path.child('nominalConcurrencyShares').invalid(shares, 'must be a non-negative integer')]
}

function validateLendable(path: FieldPath, { lendablePercent: percent = 0 }: ConcurrencyShares): FieldError[] {
  if (percent >= 0 && percent <= 100) return []
  return [path.child('lendablePercent').invalid(percent, 'must be between 0 and 100, inclusive')]
}

const responses = ['Queue', 'Reject']

function validateResponse(path: FieldPath, { type, queuing }: LimitResponse): FieldError[] {
  const field = path.child('queuing')
  if (type === 'Reject') {
    const detail = 'must be nil if limited.limitResponse.type is not Limited'
    return queuing === undefined ? [] : [field.forbidden(detail)]
  }
  if (type === 'Queue') {
    const detail = 'must not be empty if limited.limitResponse.type is Limited'
    return queuing === undefined ? [field.required(detail)] : validateQueuing(field, queuing)
  }
  const at = path.child('type')
  return [type === '' ? at.required() : at.notInSet(asJson(type), responses)]
}

const MAX_QUEUES = 10_000_000
/** The number of hash bits available for dealing a flow its hand of queues. */
const MAX_HASH_BITS = 60

function validateQueuing(path: FieldPath, { queues, handSize, queueLengthLimit }: QueuingConfiguration): FieldError[] {
  const errors: FieldError[] = []
  const refuse = (name: string, value: number, detail: string): void => {
    errors.push(path.child(name).invalid(value, detail))
  }
  if (queueLengthLimit <= 0) refuse('queueLengthLimit', queueLengthLimit, 'must be positive')
  if (queues <= 0) refuse('queues', queues, 'must be positive')
  else if (queues > MAX_QUEUES) refuse('queues', queues, `must not be greater than ${MAX_QUEUES}`)
  if (handSize <= 0) refuse('handSize', handSize, 'must be positive')
  else if (handSize > queues) refuse('handSize', handSize, `should not be greater than queues (${queues})`)
  else if (Math.ceil(Math.log2(queues) * handSize) > MAX_HASH_BITS) {
    const sizes = `required entropy bits of deckSize ${queues} and handSize ${handSize}`
    refuse('handSize', handSize, `${sizes} should not be greater than ${MAX_HASH_BITS}`)
  }
  return errors
}
