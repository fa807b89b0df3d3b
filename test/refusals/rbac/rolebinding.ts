import { RoleBindings } from '#apis/rbac/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { badBindings, badBindingUpdates, binding } from './bindings.ts'

export const roleBinding: KindCases = {
  kind: RoleBindings,
  valid: binding,
  refused: [...badBindings, ...badBindingUpdates, ...badMetadataUpdates],
}
