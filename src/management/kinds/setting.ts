/** Setting: one named value of the server, such as `server-url`. */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import { defineManagementKind, type ManagementKind, record } from './definition.ts'

export interface Setting extends KubeObject {
  readonly spec: { readonly value: string }
}

export const SETTING: ManagementKind<Setting> = defineManagementKind<Setting>({
  kind: 'Setting',
  plural: 'settings',
  description: 'A named value of the management server.',
  spec: record({ value: { type: 'string', maxLength: 65_536 } }, ['value']),
  columns: [{ name: 'Value', jsonPath: '.spec.value' }],
})
export const Settings: Kind<Setting> = SETTING.kind
