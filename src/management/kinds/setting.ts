/** Setting: one named value of the server, such as `server-url`. */
import type { KubeObject } from '#meta/object.ts'

import { defineManagementKind, record } from './definition.ts'

export interface Setting extends KubeObject {
  readonly spec: { readonly value: string }
}

export const SETTING = defineManagementKind<Setting>({
  kind: 'Setting',
  plural: 'settings',
  description: 'A named value of the management server.',
  spec: record({ value: { type: 'string', maxLength: 65_536 } }, ['value']),
  columns: [{ name: 'Value', jsonPath: '.spec.value' }],
})
export const Settings = SETTING.kind
