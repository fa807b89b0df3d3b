/** The table of attacks, by name. */
import type { Attack } from './attack.ts'
import { CONNECTION_ATTACKS } from './connections.ts'
import { HTTP2_ATTACKS } from './http2-floods.ts'
import { REQUEST_ATTACKS } from './requests.ts'

export const ATTACKS: Readonly<Record<string, Attack>> = {
  ...CONNECTION_ATTACKS,
  ...HTTP2_ATTACKS,
  ...REQUEST_ATTACKS,
}
