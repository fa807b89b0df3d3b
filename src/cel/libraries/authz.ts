/** Questions to the authorizer: may this user, or that service account, do such a thing? */
import { defineLibrary, member, type Library } from '../library.ts'
import { BOOL, STRING, opaque } from '../type.ts'

const AUTHORIZER = opaque('kubernetes.authorization.Authorizer')
const PATH_CHECK = opaque('kubernetes.authorization.PathCheck')
const GROUP_CHECK = opaque('kubernetes.authorization.GroupCheck')
const RESOURCE_CHECK = opaque('kubernetes.authorization.ResourceCheck')
const DECISION = opaque('kubernetes.authorization.Decision')

export const authz: Library = defineLibrary('kubernetes.authz', {
  path: [member('authorizer_path', [AUTHORIZER, STRING], PATH_CHECK)],
  group: [member('authorizer_group', [AUTHORIZER, STRING], GROUP_CHECK)],
  serviceAccount: [member('authorizer_serviceaccount', [AUTHORIZER, STRING, STRING], AUTHORIZER)],
  resource: [member('groupcheck_resource', [GROUP_CHECK, STRING], RESOURCE_CHECK)],
  subresource: [member('resourcecheck_subresource', [RESOURCE_CHECK, STRING], RESOURCE_CHECK)],
  namespace: [member('resourcecheck_namespace', [RESOURCE_CHECK, STRING], RESOURCE_CHECK)],
  name: [member('resourcecheck_name', [RESOURCE_CHECK, STRING], RESOURCE_CHECK)],
  check: [
    member('pathcheck_check', [PATH_CHECK, STRING], DECISION),
    member('resourcecheck_check', [RESOURCE_CHECK, STRING], DECISION),
  ],
  errored: [member('decision_errored', [DECISION], BOOL)],
  error: [member('decision_error', [DECISION], STRING)],
  allowed: [member('decision_allowed', [DECISION], BOOL)],
  reason: [member('decision_reason', [DECISION], STRING)],
})

export const authzSelectors: Library = defineLibrary('kubernetes.authzSelectors', {
  fieldSelector: [member('authorizer_fieldselector', [RESOURCE_CHECK, STRING], RESOURCE_CHECK)],
  labelSelector: [member('authorizer_labelselector', [RESOURCE_CHECK, STRING], RESOURCE_CHECK)],
})
