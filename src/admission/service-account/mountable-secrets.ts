/**
 * Enforces mountable secrets: if a service account has the annotation, its pods may only reference the secrets that the
 * account lists.
 */
import type { Container, EphemeralContainer, PodSpec, ServiceAccount } from '#apis/core/v1.ts'

const ANNOTATION = 'kubernetes.io/enforce-mountable-secrets'

/** The values that strconv.ParseBool accepts as true. */
const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True'])

export function restrictsSecrets({ metadata }: ServiceAccount): boolean {
  return TRUE.has(metadata.annotations?.[ANNOTATION] ?? '')
}

/** The refusal for the first forbidden secret. */
export function secretComplaint(account: ServiceAccount, spec: PodSpec): string | undefined {
  return (
    volumeComplaint(account, spec) ??
    containerComplaint(account, 'init container', spec.initContainers) ??
    containerComplaint(account, 'container', spec.containers) ??
    pullComplaint(account, spec)
  )
}

export function ephemeralSecretComplaint(account: ServiceAccount, spec: PodSpec): string | undefined {
  return containerComplaint(account, 'ephemeral container', spec.ephemeralContainers)
}

function notAllowed(what: string, { metadata }: ServiceAccount, kind = 'secret'): string {
  return `${what} is not allowed because service account ${metadata.name} does not reference that ${kind}`
}

function listedSecrets({ secrets = [] }: ServiceAccount): ReadonlySet<string> {
  return new Set(secrets.map(({ name }) => name ?? ''))
}

function volumeComplaint(account: ServiceAccount, { volumes = [] }: PodSpec): string | undefined {
  const listed = listedSecrets(account)
  const bad = volumes.find(({ secret }) => secret !== undefined && !listed.has(secret.secretName ?? ''))
  if (bad === undefined) return undefined
  return notAllowed(`volume with secret.secretName="${bad.secret?.secretName ?? ''}"`, account)
}

function containerComplaint(
  account: ServiceAccount,
  what: string,
  containers: readonly (Container | EphemeralContainer)[] = [],
): string | undefined {
  const listed = listedSecrets(account)
  for (const { name, env = [], envFrom = [] } of containers) {
    const uses = [
      ...env.flatMap((variable) => {
        const secret = variable.valueFrom?.secretKeyRef
        return secret === undefined ? [] : [{ by: `envVar ${variable.name}`, secret: secret.name ?? '' }]
      }),
      ...envFrom.flatMap(({ secretRef }) =>
        secretRef === undefined ? [] : [{ by: 'envFrom', secret: secretRef.name ?? '' }],
      ),
    ]
    const bad = uses.find(({ secret }) => !listed.has(secret))
    if (bad === undefined) continue
    return notAllowed(`${what} ${name} with ${bad.by} referencing secret.secretName="${bad.secret}"`, account)
  }
  return undefined
}

function pullComplaint(account: ServiceAccount, { imagePullSecrets = [] }: PodSpec): string | undefined {
  const listed = new Set((account.imagePullSecrets ?? []).map(({ name }) => name ?? ''))
  const at = imagePullSecrets.findIndex(({ name }) => !listed.has(name ?? ''))
  if (at < 0) return undefined
  return notAllowed(`imagePullSecrets[${at}].name="${imagePullSecrets[at]?.name ?? ''}"`, account, 'imagePullSecret')
}
