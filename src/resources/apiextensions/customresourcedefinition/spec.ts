/** The rules of a definition's spec: names, versions, conversion. */
import type {
  CustomResourceConversion,
  CustomResourceDefinitionNames,
  CustomResourceDefinitionSpec,
} from '#apis/apiextensions/v1.ts'
import { byteLength, isPrintable } from '#lib/go-text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { flatMapSteps, type Steps } from '#lib/slices.ts'
import {
  asJson,
  child,
  type FieldError,
  forbidden,
  index,
  invalid,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { dns1035Label, dns1123Subdomain } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'
import { someSchema } from '#model/custom/schema-walk.ts'

import { validateWebhookClient } from '../../webhook-client.ts'
import { definitionOf, type DefinedVersion, type Definition, hasAnyStatus, hasStatus } from './definition.ts'
import { internalVersions } from './internal-form.ts'
import type { SchemaOptions } from './schema-rules.ts'
import {
  validateColumn,
  validateSelectableFields,
  validateSubresources,
  validateVersionSchema,
} from './version-parts.ts'

/** What an update may keep because the old object had it already. */
export interface SpecOptions extends SchemaOptions {
  readonly openApiSchema: boolean
  readonly structural: boolean
  readonly prunedDefaults: boolean
  readonly reviewVersion: boolean
  readonly soundCaBundle: boolean
  /** Versions that may have more selectable fields than is allowed now; empty for those of all. */
  readonly manySelectable: ReadonlySet<string>
  /** Versions whose schemas are what they were. */
  readonly unchanged: ReadonlySet<string>
}

/** All complaints in one, as upstream does here. */
function joined(field: string, value: string, complaints: readonly string[], intro = ''): FieldError[] {
  return complaints.length === 0 ? [] : [invalid(field, value, `${intro}${complaints.join(',')}`)]
}

export function* validateSpec(spec: CustomResourceDefinitionSpec, given: SpecOptions): Steps<FieldError[]> {
  const definition = definitionOf(spec)
  yield
  const { common, versions, preservesUnknown } = definition
  const options = { ...given, structural: given.structural || !preservesUnknown || needsStructure(definition) }
  const firstName = versions[0]?.name ?? ''
  return [
    ...validateGroup(spec.group),
    ...validateScope(spec.scope),
    ...validateSchemaPresence(definition, options),
    ...(preservesUnknown && hasDefaults(definition)
      ? [invalid('spec.preserveUnknownFields', true, 'must be false in order to use defaults in the schema')]
      : []),
    ...(yield* flatMapSteps(versions, (version, at) =>
      validateVersion(index('spec.versions', at), version, definition, options),
    )),
    ...validateVersionSet(versions),
    ...joined('spec.version', firstName, firstName === '' ? [] : dns1035Label(firstName)),
    ...(['plural', 'singular', 'kind', 'listKind'] as const)
      .filter((name) => (spec.names[name] ?? '') === '')
      .map((name) => required(`spec.names.${name}`)),
    ...validateNames('spec.names', spec.names),
    ...(yield* validateVersionSchema('spec.validation', common.schema, hasAnyStatus(definition), {
      ...options,
      costsAnything: options.unchanged.has(firstName),
    })),
    ...validateSubresources('spec.subresources', common.subresources),
    ...(common.additionalPrinterColumns ?? []).flatMap((column, at) =>
      validateColumn(index('spec.additionalPrinterColumns', at), column),
    ),
    ...validateCommonSelectable(definition, options),
    ...validateConversion(definition, options),
  ]
}

function validateGroup(group: string): FieldError[] {
  if (group === '') return [required('spec.group')]
  const errors = joined('spec.group', group, dns1123Subdomain(group))
  if (errors.length > 0 || group.includes('.')) return errors
  return [invalid('spec.group', group, 'should be a domain with at least one dot')]
}

const scopes = ['Cluster', 'Namespaced']

function validateScope(scope: string): FieldError[] {
  if (scope === '') return [required('spec.scope')]
  return scopes.includes(scope) ? [] : [notSupported('spec.scope', scope, scopes)]
}

function schemasIn({ common, versions }: Definition): DefinedVersion['schema'][] {
  return [common.schema, ...versions.map(({ schema }) => schema)]
}

function hasDefaults(definition: Definition): boolean {
  return schemasIn(definition).some(
    (one) =>
      one?.openAPIV3Schema !== undefined &&
      someSchema(one.openAPIV3Schema, (schema) => (schema.default ?? null) !== null),
  )
}

const extensions = [
  'x-kubernetes-embedded-resource',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-list-type',
  'x-kubernetes-validations',
] as const

function needsStructure(definition: Definition): boolean {
  return schemasIn(definition).some(
    (one) =>
      one?.openAPIV3Schema !== undefined &&
      someSchema(
        one.openAPIV3Schema,
        (schema) => (schema.default ?? null) !== null || extensions.some((name) => schema[name] !== undefined),
      ),
  )
}

function validateSchemaPresence(
  { common, versions, preservesUnknown }: Definition,
  options: SpecOptions,
): FieldError[] {
  if (common.schema?.openAPIV3Schema !== undefined) return []
  const detail = options.openApiSchema ? '' : 'because otherwise all fields are pruned'
  if (!options.openApiSchema && preservesUnknown) return []
  return versions.flatMap(({ schema, served }, at) =>
    schema?.openAPIV3Schema === undefined && (options.openApiSchema || served)
      ? [required(`spec.versions[${at}].schema.openAPIV3Schema`, detail)]
      : [],
  )
}

function* validateVersion(
  path: string,
  version: DefinedVersion,
  definition: Definition,
  options: SpecOptions,
): Steps<FieldError[]> {
  const { name, schema, selectableFields = [] } = version
  const field = child(path, 'selectableFields')
  const openApi = schema?.openAPIV3Schema
  const selectable =
    openApi === undefined
      ? [invalid(field, '', 'may only be set when `version.schema.openAPIV3Schema` is not included')]
      : validateSelectableFields(field, selectableFields, openApi, options.manySelectable.has(name))
  return [
    ...joined(child(path, 'name'), name, dns1035Label(name)),
    ...validateDeprecation(child(path, 'deprecationWarning'), version),
    ...(yield* validateVersionSchema(child(path, 'schema'), schema, hasStatus(definition, version), {
      ...options,
      costsAnything: options.unchanged.has(name),
    })),
    ...validateSubresources(child(path, 'subresources'), version.subresources),
    ...(version.additionalPrinterColumns ?? []).flatMap((column, at) =>
      validateColumn(index(child(path, 'additionalPrinterColumns'), at), column),
    ),
    ...(selectableFields.length === 0 ? [] : selectable),
  ]
}

const MAX_WARNING_BYTES = 256

function validateDeprecation(field: string, { deprecated, deprecationWarning: warning }: DefinedVersion): FieldError[] {
  if (warning === undefined) return []
  if (deprecated !== true) return [invalid(field, warning, 'can only be set for deprecated versions')]
  const complaints: string[] = []
  if (byteLength(warning) > MAX_WARNING_BYTES) complaints.push(`must be <= ${MAX_WARNING_BYTES} characters long`)
  if (warning === '') complaints.push('must not be an empty string')
  let position = 0
  for (const char of warning) {
    if (!isPrintable(char)) {
      const place = `non-printable character found at index ${position}`
      complaints.push(`must only contain printable UTF-8 characters; ${place}`)
      break
    }
    position += byteLength(char)
  }
  return complaining(field, warning, complaints)
}

function validateVersionSet(versions: readonly DefinedVersion[]): FieldError[] {
  const names = new Set(versions.map(({ name }) => name))
  const stored = versions.filter(({ storage }) => storage)
  const wrong = (detail: string): FieldError => invalid('spec.versions', internalVersions(versions), detail)
  return [
    ...(names.size < versions.length ? [wrong('must contain unique version names')] : []),
    ...(stored.length === 1 ? [] : [wrong('must have exactly one version marked as storage version')]),
  ]
}

/** Also the rule for the names that a definition got. Empty ones are let pass. */
export function validateNames(path: string, names: CustomResourceDefinitionNames): FieldError[] {
  const { plural, singular = '', kind, listKind = '', shortNames = [], categories = [] } = names
  const mixed = 'may have mixed case, but should otherwise match: '
  const label = (name: string, value: string): FieldError[] =>
    value === '' ? [] : joined(child(path, name), value, dns1035Label(value))
  const kindLabel = (name: string, value: string): FieldError[] =>
    value === '' ? [] : joined(child(path, name), value, dns1035Label(value.toLowerCase()), mixed)
  const each = (name: string, values: readonly string[]): FieldError[] =>
    values.flatMap((value, at) => joined(index(child(path, name), at), value, dns1035Label(value)))
  return [
    ...label('plural', plural),
    ...label('singular', singular),
    ...kindLabel('kind', kind),
    ...kindLabel('listKind', listKind),
    ...each('shortNames', shortNames),
    ...(kind !== '' && kind === listKind
      ? [invalid(child(path, 'listKind'), listKind, 'kind and listKind may not be the same')]
      : []),
    ...each('categories', categories),
  ]
}

function validateCommonSelectable({ common }: Definition, options: SpecOptions): FieldError[] {
  const { schema, selectableFields = [] } = common
  if (selectableFields.length === 0) return []
  const field = 'spec.selectableFields'
  const openApi = schema?.openAPIV3Schema
  if (openApi === undefined) return [invalid(field, '', 'may only be set when validations.schema is included')]
  return validateSelectableFields(field, selectableFields, openApi, options.manySelectable.has(''))
}

const strategies = ['None', 'Webhook']
const reviewVersions = ['v1', 'v1beta1']

export function isKnownReviewVersion(version: string): boolean {
  return reviewVersions.includes(version)
}

function validateConversion({ conversion, preservesUnknown }: Definition, options: SpecOptions): FieldError[] {
  if (conversion === undefined) return []
  const { strategy } = conversion
  const field = 'spec.conversion.strategy'
  const unknown = strategies.includes(strategy) ? [] : [notSupported(field, strategy, strategies)]
  return [
    ...(strategy !== 'None' && preservesUnknown
      ? [invalid(field, asJson(strategy), 'must be None if spec.preserveUnknownFields is true')]
      : []),
    ...(strategy === '' ? [required(field)] : unknown),
    ...(strategy === 'Webhook' ? validateWebhook(conversion, options) : validateNoWebhook(conversion)),
  ]
}

const CLIENT = 'spec.conversion.webhookClientConfig'
const VERSIONS = 'spec.conversion.conversionReviewVersions'

function validateWebhook({ webhook }: CustomResourceConversion, options: SpecOptions): FieldError[] {
  const client = webhook?.clientConfig
  const bundle = client?.caBundle ?? ''
  const badBundle = options.soundCaBundle && bundle !== '' && !hasCertificate(bundle)
  return [
    ...(client === undefined ? [required(CLIENT, 'required when strategy is set to Webhook')] : []),
    ...(client === undefined ? [] : validateWebhookClient(CLIENT, client)),
    ...(badBundle
      ? [
          invalid(
            child(CLIENT, 'caBundle'),
            asJson(bundle),
            'unable to load root certificates: unable to parse bytes as PEM block',
          ),
        ]
      : []),
    ...validateReviewVersions(webhook?.conversionReviewVersions ?? [], options),
  ]
}

/** In base64, as it stands in objects. */
export function hasCertificate(bundle: string): boolean {
  return Buffer.from(bundle, 'base64').includes('-----BEGIN CERTIFICATE-----')
}

function validateReviewVersions(versions: readonly string[], options: SpecOptions): FieldError[] {
  if (versions.length === 0) return [required(VERSIONS)]
  const isRepeated = createRepetition()
  const errors = versions.flatMap((version, at) =>
    isRepeated(version)
      ? [invalid(index(VERSIONS, at), version, 'duplicate version')]
      : complaining(index(VERSIONS, at), version, dns1035Label(version)),
  )
  if (!options.reviewVersion || versions.some(isKnownReviewVersion)) return errors
  return [...errors, invalid(VERSIONS, versions, `must include at least one of ${reviewVersions.join(', ')}`)]
}

function validateNoWebhook({ webhook }: CustomResourceConversion): FieldError[] {
  const detail = 'should not be set when strategy is not set to Webhook'
  return [
    ...(webhook?.clientConfig === undefined ? [] : [forbidden(CLIENT, detail)]),
    ...((webhook?.conversionReviewVersions ?? []).length === 0 ? [] : [forbidden(VERSIONS, detail)]),
  ]
}
