/**
 * Creates registration tokens, with which agents register a cluster. A response contains the token once; the stored
 * object contains only its hash.
 */
import { type Cluster } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { type RegistrationToken, RegistrationTokens } from '../kinds/registration-token.ts'
import { hashOf } from '../links/agent-routes.ts'
import type { ManagementObjects } from '../objects.ts'

const VALID_MS = 24 * 3_600_000
const SECRET_BYTES = 32
/** The agent registers once; a second use is for the case that it lost its credential before it was stored. */
const USES = 2

/** Returns the text of the token. */
export async function createRegistrationToken(
  objects: ManagementObjects,
  cluster: Cluster,
  createdBy: string,
): Promise<string> {
  const { name = '', uid = '' } = cluster.metadata
  const text = objects.random.bytes(SECRET_BYTES).toString('base64url')
  const expiresAt = new Date(objects.clock.now() + VALID_MS).toISOString()
  const spec: RegistrationToken['spec'] = { cluster: name, hash: hashOf(text), expiresAt, usesLeft: USES, createdBy }
  const ownerReferences = [{ apiVersion: `${GROUP}/v1`, kind: 'Cluster', name, uid }]
  await objects.create(RegistrationTokens, { metadata: { generateName: `${name}-`, ownerReferences }, spec })
  return text
}

/** Whether the text is that of a token that can still be used for the cluster. */
export function isRegistrationToken(objects: ManagementObjects, cluster: string, text: string): boolean {
  const hash = hashOf(text)
  return objects
    .list(RegistrationTokens)
    .some(
      ({ spec }) =>
        spec.cluster === cluster &&
        spec.hash === hash &&
        spec.usesLeft > 0 &&
        Date.parse(spec.expiresAt) > objects.clock.now(),
    )
}
