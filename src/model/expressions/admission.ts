/**
 * Compiles CEL expressions about admission requests: match conditions of webhooks, and all expressions of admission
 * policies.
 */
import { createEnvironment, type Environment } from '#cel/environment.ts'
import { baseLibraries, jsonPatch } from '#cel/libraries/index.ts'
import type { Library } from '#cel/library.ts'
import {
  BOOL,
  type CelType,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  type ObjectType,
  opaque,
  type SimpleType,
  STRING,
} from '#cel/type.ts'

import {
  ANYTHING,
  type CompiledExpression,
  compileExpression,
  type Demand,
  exactly,
  type UnfitExpression,
} from './compile.ts'
import { declareObject, declareTexts } from './declared-type.ts'
import { jsonPatchType, objectType, patchTypeNamed } from './patch-types.ts'

const GROUP_VERSION_KIND = declareTexts('kubernetes.GroupVersionKind', ['group', 'version', 'kind'])
const GROUP_VERSION_RESOURCE = declareTexts('kubernetes.GroupVersionResource', ['group', 'version', 'resource'])

export const USER_INFO: ObjectType = declareObject('kubernetes.UserInfo', {
  username: STRING,
  uid: STRING,
  groups: listOf(STRING),
  extra: mapOf(STRING, listOf(STRING)),
})

const REQUEST = declareObject('kubernetes.AdmissionRequest', {
  kind: GROUP_VERSION_KIND,
  resource: GROUP_VERSION_RESOURCE,
  subResource: STRING,
  requestKind: GROUP_VERSION_KIND,
  requestResource: GROUP_VERSION_RESOURCE,
  requestSubResource: STRING,
  name: STRING,
  namespace: STRING,
  operation: STRING,
  userInfo: USER_INFO,
  dryRun: BOOL,
  options: DYN,
})

/** A time by its type, text by its value. */
const TIME_TEXT: SimpleType = { kind: 'timestamp', isUnsure: true }

/** Upstream declares `UID` and times, but passes the JSON, which has `uid` and times as text. */
const NAMESPACE = declareObject('kubernetes.Namespace', {
  metadata: declareObject('kubernetes.NamespaceMetadata', {
    name: STRING,
    generateName: STRING,
    namespace: STRING,
    labels: mapOf(STRING, STRING),
    annotations: mapOf(STRING, STRING),
    UID: STRING,
    creationTimestamp: TIME_TEXT,
    deletionGracePeriodSeconds: INT,
    deletionTimestamp: TIME_TEXT,
    generation: INT,
    resourceVersion: STRING,
    finalizers: listOf(STRING),
  }),
  spec: declareObject('kubernetes.NamespaceSpec', { finalizers: listOf(STRING) }),
  status: declareObject('kubernetes.NamespaceStatus', {
    conditions: listOf(
      declareObject('kubernetes.NamespaceCondition', {
        status: STRING,
        type: STRING,
        lastTransitionTime: TIME_TEXT,
        message: STRING,
        reason: STRING,
      }),
    ),
    phase: STRING,
  }),
})

const AUTHORIZER = opaque('kubernetes.authorization.Authorizer')
const RESOURCE_CHECK = opaque('kubernetes.authorization.ResourceCheck')

/** The purpose of an expression, which determines its result type and its variables. */
export type AdmissionPurpose =
  /** A boolean about a request. */
  | 'match-condition'
  | 'validation'
  /** Text, or null for an audit annotation. */
  | 'message'
  | 'audit-annotation'
  /** Any value. */
  | 'variable'
  /** An `Object` to apply, or a list of `JSONPatch`. */
  | 'apply-configuration'
  | 'json-patch'

interface PurposeRules {
  readonly demand: Demand
  readonly hasAuthorizer: boolean
  readonly hasPatchTypes: boolean
}

const rules = (demand: Demand, more: Partial<PurposeRules> = {}): PurposeRules => ({
  demand,
  hasAuthorizer: true,
  hasPatchTypes: false,
  ...more,
})

const PURPOSES: Readonly<Record<AdmissionPurpose, PurposeRules>> = {
  'match-condition': rules(exactly(BOOL)),
  validation: rules(exactly(BOOL)),
  message: rules(exactly(STRING), { hasAuthorizer: false }),
  'audit-annotation': rules(exactly(STRING, NULL)),
  variable: rules(ANYTHING),
  'apply-configuration': rules(exactly(objectType('Object')), { hasPatchTypes: true }),
  'json-patch': rules(exactly(listOf(jsonPatchType)), { hasPatchTypes: true }),
}

/** The type of a schema; dynamic by default. */
export interface KnownTypes {
  readonly object?: CelType | undefined
  readonly params?: CelType | undefined
}

export interface AdmissionCompilerOptions {
  /** True if `params` is available. */
  readonly hasParams: boolean
  /** True if `variables` is available: for policies always at run time, and at validation if they have any. */
  readonly hasVariables: boolean
  readonly types?: KnownTypes
}

/** Compiles the expressions of one policy or webhook. Variables are declared one by one, each for those after it. */
export interface AdmissionCompiler {
  compile(source: string, purpose: AdmissionPurpose): CompiledExpression | UnfitExpression
  /** Also compiles it. A variable that does not compile has the dynamic type. */
  declareVariable(name: string, source: string): CompiledExpression | UnfitExpression
}

const PATCH_LIBRARIES: readonly Library[] = [...baseLibraries, jsonPatch]

export function createAdmissionCompiler({
  hasParams,
  hasVariables,
  types = {},
}: AdmissionCompilerOptions): AdmissionCompiler {
  const known = new Map<string, CelType>()
  const composed: ObjectType = {
    kind: 'object',
    name: 'kubernetes.variables',
    field(jsonName) {
      const type = known.get(jsonName)
      return type && { type, jsonName }
    },
  }
  const { object = DYN, params = DYN } = types
  const variables = {
    object,
    oldObject: object,
    namespaceObject: NAMESPACE,
    request: REQUEST,
    ...(hasParams && { params }),
    ...(hasVariables && { variables: composed }),
  }
  const environmentFor = remembered(variables)
  const compile: AdmissionCompiler['compile'] = (source, purpose) =>
    compileExpression(environmentFor(PURPOSES[purpose]), source, PURPOSES[purpose].demand)
  return {
    compile,
    declareVariable(name, source) {
      const compiled = compile(source, 'variable')
      known.set(name, compiled.fault === undefined ? widened(compiled.type) : DYN)
      return compiled
    },
  }
}

/** One environment for each set of purpose-dependent options, created on demand. */
function remembered(variables: Readonly<Record<string, CelType>>): (rules: PurposeRules) => Environment {
  const environments = new Map<string, Environment>()
  return ({ hasAuthorizer, hasPatchTypes }) => {
    const key = `${hasAuthorizer} ${hasPatchTypes}`
    let environment = environments.get(key)
    if (environment === undefined) {
      environment = createEnvironment({
        libraries: hasPatchTypes ? PATCH_LIBRARIES : baseLibraries,
        variables: {
          ...variables,
          ...(hasAuthorizer && { authorizer: AUTHORIZER, 'authorizer.requestResource': RESOURCE_CHECK }),
        },
        ...(hasPatchTypes && { typeNamed: patchTypeNamed }),
      })
      environments.set(key, environment)
    }
    return environment
  }
}

/** The types that upstream records for variables: scalars, and lists and maps of them; others are dynamic. */
function widened(type: CelType): CelType {
  switch (type.kind) {
    case 'list':
      return listOf(widened(type.element))
    case 'map':
      return mapOf(widened(type.key), widened(type.value))
    case 'object':
    case 'opaque':
    case 'type':
    case 'wrapper':
    case 'parameter':
    case 'error':
      return DYN
    default:
      return type
  }
}
