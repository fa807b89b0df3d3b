/**
 * Creates registration tokens, with which agents register a cluster. A response contains the token once; the stored
 * object contains only its hash.
 */
import { type Cluster } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import type { MachineRole } from '../kinds/machine.ts'
import { type RegistrationToken, RegistrationTokens } from '../kinds/registration-token.ts'
import { hashOf } from '../links/agent-request.ts'
import { findToken } from '../links/registration-check.ts'
import type { ManagementObjects } from '../objects.ts'

const HOUR_MS = 3_600_000
const VALID_HOURS = 24
const SECRET_BYTES = 32
/** The agent registers once; a second use is for the case that it lost its credential before it was stored. */
const USES = 2

/** For agents of machines. */
export interface MachineGrant {
  readonly roles: readonly MachineRole[]
  readonly uses: number
  readonly validHours: number
}

/** Returns the text of the token. Without a grant it is for the agent of the cluster. */
export async function createRegistrationToken(
  objects: ManagementObjects,
  cluster: Cluster,
  createdBy: string,
  grant?: MachineGrant,
): Promise<string> {
  const { name = '', uid = '' } = cluster.metadata
  const text = objects.random.bytes(SECRET_BYTES).toString('base64url')
  const { validHours = VALID_HOURS, uses = USES, roles } = grant ?? {}
  const expiresAt = new Date(objects.clock.now() + validHours * HOUR_MS).toISOString()
  const purpose = roles === undefined ? {} : ({ purpose: 'machine', roles } as const)
  const common = { cluster: name, hash: hashOf(text), expiresAt, usesLeft: uses, createdBy }
  const spec: RegistrationToken['spec'] = { ...common, ...purpose }
  const ownerReferences = [{ apiVersion: `${GROUP}/v1`, kind: 'Cluster', name, uid }]
  await objects.create(RegistrationTokens, { metadata: { generateName: `${name}-`, ownerReferences }, spec })
  return text
}

/** Whether the text is that of a token that can still be used for the cluster. */
export function isRegistrationToken(objects: ManagementObjects, cluster: string, text: string): boolean {
  return findToken(objects, text, 'cluster')?.spec.cluster === cluster
}
