/** The CEL library `authorizer`: checks whether a user or service account may perform an action. */
import { nameIsLabel, nameIsSubdomain } from '#meta/validation/names.ts'

import type { AuthorizerValue } from '../authorizer.ts'
import { ResourceCheckValue, type Answer } from '../authorizer.ts'
import { sizeAt } from '../cost/costs.ts'
import { addSpans, fixed, scaleSpan } from '../cost/span.ts'
import { defineLibrary, member, type Cost, type Library, type Overload, type Span } from '../library.ts'
import { BOOL, STRING, opaque } from '../type.ts'
import { Failure, OpaqueValue, type Result } from '../value.ts'
import { sizeOf } from '../values/size.ts'

const AUTHORIZER = opaque('kubernetes.authorization.Authorizer')
const PATH_CHECK = opaque('kubernetes.authorization.PathCheck')
const GROUP_CHECK = opaque('kubernetes.authorization.GroupCheck')
const RESOURCE_CHECK = opaque('kubernetes.authorization.ResourceCheck')
const DECISION = opaque('kubernetes.authorization.Decision')

/** Two checks for each expression, no more. */
const CHECK_COST = 350_000

class PathCheckValue extends OpaqueValue {
  readonly typeName = 'kubernetes.authorization.PathCheck'
  readonly authorizer: AuthorizerValue
  readonly path: string
  constructor(authorizer: AuthorizerValue, path: string) {
    super()
    this.authorizer = authorizer
    this.path = path
  }
  equals(other: PathCheckValue): boolean {
    return this === other
  }
}

class GroupCheckValue extends OpaqueValue {
  readonly typeName = 'kubernetes.authorization.GroupCheck'
  readonly authorizer: AuthorizerValue
  readonly group: string
  constructor(authorizer: AuthorizerValue, group: string) {
    super()
    this.authorizer = authorizer
    this.group = group
  }
  equals(other: GroupCheckValue): boolean {
    return this === other
  }
}

class DecisionValue extends OpaqueValue {
  readonly typeName = 'kubernetes.authorization.Decision'
  readonly answer: Answer
  constructor(answer: Answer) {
    super()
    this.answer = answer
  }
  equals(other: DecisionValue): boolean {
    return this === other
  }
}

const isBlank = (text: string): boolean => text.trim() === ''

function serviceAccount(authorizer: AuthorizerValue, namespace: string, name: string): Result {
  if (nameIsSubdomain(name, false).length > 0) return new Failure('Invalid service account name')
  if (nameIsLabel(namespace, false).length > 0) return new Failure('Invalid service account namespace')
  return authorizer.forServiceAccount(namespace, name)
}

const checkPath = ({ authorizer, path }: PathCheckValue, verb: string): Result =>
  new DecisionValue(authorizer.decide({ kind: 'path', subject: authorizer.subject, verb, path }))

const checkResource = ({ authorizer, check }: ResourceCheckValue, verb: string): Result =>
  new DecisionValue(authorizer.decide({ ...check, verb }))

type Detail = 'subresource' | 'namespace' | 'name' | 'fieldSelector' | 'labelSelector'

const refine = (id: string, detail: Detail, behaviour: Pick<Overload, 'cost' | 'estimate'> = {}): Overload[] => [
  member(id, [RESOURCE_CHECK, STRING], RESOURCE_CHECK, {
    ...behaviour,
    evaluate: (check: ResourceCheckValue, text: string) => check.with({ [detail]: text }),
  }),
]

const checkCost: Cost = () => CHECK_COST
const checking = { cost: checkCost, dynamicCost: checkCost, estimate: () => ({ cost: fixed(CHECK_COST) }) }

/** A list, the text once through, and a requirement for every two characters. */
const selectorSpan = (size: Span): Span =>
  addSpans(fixed(10), scaleSpan(size, 0.1), scaleSpan(scaleSpan(size, 0.5), 50))

const selecting: Pick<Overload, 'cost' | 'estimate'> = {
  cost: (_check, selector) => Number(selectorSpan(fixed(sizeOf(selector))).max),
  estimate: (args) => ({ cost: selectorSpan(sizeAt(args, 1)) }),
}

export const authz: Library = defineLibrary('kubernetes.authz', {
  path: [
    member('authorizer_path', [AUTHORIZER, STRING], PATH_CHECK, {
      evaluate: (authorizer: AuthorizerValue, path: string) =>
        isBlank(path) ? new Failure('path must not be empty') : new PathCheckValue(authorizer, path),
    }),
  ],
  group: [
    member('authorizer_group', [AUTHORIZER, STRING], GROUP_CHECK, {
      evaluate: (authorizer: AuthorizerValue, group: string) => new GroupCheckValue(authorizer, group),
    }),
  ],
  serviceAccount: [
    member('authorizer_serviceaccount', [AUTHORIZER, STRING, STRING], AUTHORIZER, { evaluate: serviceAccount }),
  ],
  resource: [
    member('groupcheck_resource', [GROUP_CHECK, STRING], RESOURCE_CHECK, {
      evaluate: ({ authorizer, group }: GroupCheckValue, resource: string) =>
        isBlank(resource)
          ? new Failure('resource must not be empty')
          : new ResourceCheckValue(authorizer, { group, resource }),
    }),
  ],
  subresource: refine('resourcecheck_subresource', 'subresource'),
  namespace: refine('resourcecheck_namespace', 'namespace'),
  name: refine('resourcecheck_name', 'name'),
  check: [
    member('pathcheck_check', [PATH_CHECK, STRING], DECISION, { ...checking, evaluate: checkPath }),
    member('resourcecheck_check', [RESOURCE_CHECK, STRING], DECISION, { ...checking, evaluate: checkResource }),
  ],
  errored: [
    member('decision_errored', [DECISION], BOOL, {
      evaluate: ({ answer }: DecisionValue) => answer.error !== undefined,
    }),
  ],
  error: [
    member('decision_error', [DECISION], STRING, { evaluate: ({ answer }: DecisionValue) => answer.error ?? '' }),
  ],
  allowed: [member('decision_allowed', [DECISION], BOOL, { evaluate: ({ answer }: DecisionValue) => answer.allowed })],
  reason: [member('decision_reason', [DECISION], STRING, { evaluate: ({ answer }: DecisionValue) => answer.reason })],
})

export const authzSelectors: Library = defineLibrary('kubernetes.authzSelectors', {
  fieldSelector: refine('authorizer_fieldselector', 'fieldSelector', selecting),
  labelSelector: refine('authorizer_labelselector', 'labelSelector', selecting),
})
