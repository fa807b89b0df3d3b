/** Builds admission from the settings and the configuration file: plugins, policies, webhooks and their backends. */
import type { ImagePolicy } from '#admission/image-policy-webhook.ts'
import { type AdmissionFlags, createAdmission, type PluginSettings } from '#admission/index.ts'
import type { NamespaceCreator } from '#admission/namespace-auto-provision.ts'
import type { OwnerResource } from '#admission/owner-references-permission-enforcement.ts'
import { type AdmissionPolicies, createAdmissionPolicies } from '#admission/policies/policies.ts'
import { createRegistryQuotaWriter } from '#admission/resource-quota/registry-writer.ts'
import { type AdmissionWebhooks, createAdmissionWebhooks, type WebhookType } from '#admission/webhooks/webhooks.ts'
import { Namespaces } from '#apis/core/v1.ts'
import type { Aggregated, AggregatedVersion } from '#apiserver/aggregated.ts'
import type { Admission } from '#apiserver/registry/admission.ts'
import { joinFollowings } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { createWebhookCaller, type WebhookCaller } from '#apiserver/webhooks/caller.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import type { Authorization } from './access.ts'
import { loadAdmissionConfig } from './config/admission-config.ts'
import type { WebhookPluginSettings } from './config/admission-plugins.ts'
import type { Environment } from './environment.ts'
import { openImagePolicy } from './image-policy.ts'
import { type CredentialsFor, openWebhookCredentials } from './webhook-credentials.ts'

export interface OpenAdmission {
  /** Creates admission for a registry. */
  readonly for: (registry: Registry) => Admission
  /** Follows admission configuration stored in the registry; call it once its kinds are served. */
  follow(): void
  /** Makes the kinds of aggregated servers known to plugins. */
  addAggregated(aggregated: Pick<Aggregated, 'versions'>): void
}

/** The name of the plugin and of the gate that it needs. */
const MUTATING_POLICY = 'MutatingAdmissionPolicy'

/** Throws ProgramError for unusable files. */
export async function openAdmission(environment: Environment, { authorizer }: Authorization): Promise<OpenAdmission> {
  const { settings, clock, random, isEnabled, metrics, closing } = environment
  const { credentials, ...configured } = await readSettings(environment)
  const authorize: Authorizer['authorize'] = (user, question) => authorizer.authorize(user, question)
  let configurable: readonly (AdmissionPolicies | AdmissionWebhooks)[] = []
  let aggregatedVersions: Aggregated['versions'] = () => []
  const admissionFor = (registry: Registry): Admission => {
    configurable = [
      createAdmissionPolicies({ registry, ask: authorize, clock, metrics }),
      openWebhooks(environment, registry, { authorize, credentials }),
    ]
    return createAdmission({
      clock,
      random,
      isEnabled,
      metrics,
      authorize,
      quotas: createRegistryQuotaWriter(registry),
      namespaces: namespaceCreator(registry),
      resourcesFor: (kind) => [...resourcesFor(registry, kind), ...aggregatedResources(aggregatedVersions(), kind)],
      tolerationSeconds: {
        notReadySeconds: settings['default-not-ready-toleration-seconds'],
        unreachableSeconds: settings['default-unreachable-toleration-seconds'],
      },
      more: configurable
        .flatMap(({ plugins }) => plugins)
        .filter(({ name }) => name !== MUTATING_POLICY || isEnabled(MUTATING_POLICY)),
      ...configured,
    })
  }
  return {
    for: admissionFor,
    addAggregated({ versions }) {
      aggregatedVersions = versions
    },
    follow() {
      const following = joinFollowings(configurable.map((one) => one.follow()))
      closing.defer(() => following.close())
    },
  }
}

/** The result of flags and configuration file: options of the plugins, and credentials for webhooks. */
async function readSettings(
  environment: Environment,
): Promise<AdmissionFlags & PluginSettings & { imagePolicy?: ImagePolicy; credentials: WebhookCredentials }> {
  const { settings, readFile } = environment
  const chosen = { enable: settings['enable-admission-plugins'], disable: settings['disable-admission-plugins'] }
  const { imagePolicyBackend, mutatingWebhooks, validatingWebhooks, ...plugins } = await loadAdmissionConfig(
    settings['admission-control-config-file'],
    { ...chosen, readFile },
  )
  return {
    ...chosen,
    ...plugins,
    ...(imagePolicyBackend !== undefined && { imagePolicy: await openImagePolicy(environment, imagePolicyBackend) }),
    credentials: {
      admit: await openCredentials(environment, 'MutatingAdmissionWebhook', mutatingWebhooks),
      validating: await openCredentials(environment, 'ValidatingAdmissionWebhook', validatingWebhooks),
    },
  }
}

type WebhookCredentials = Readonly<Record<WebhookType, CredentialsFor | undefined>>

function openCredentials(
  environment: Environment,
  plugin: string,
  { kubeConfigFile }: WebhookPluginSettings = {},
): Promise<CredentialsFor> | undefined {
  return kubeConfigFile === undefined ? undefined : openWebhookCredentials(environment, plugin, kubeConfigFile)
}

function openWebhooks(
  { clock, random, metrics, network, closing }: Environment,
  registry: Registry,
  { authorize, credentials }: { authorize: Authorizer['authorize']; credentials: WebhookCredentials },
): AdmissionWebhooks {
  const callerOf = (type: WebhookType): WebhookCaller => {
    const caller = createWebhookCaller({
      clock,
      random,
      objects: registry,
      network,
      credentialsFor: credentials[type],
    })
    closing.defer(() => caller.close())
    return caller
  }
  const callers = { admit: callerOf('admit'), validating: callerOf('validating') }
  return createAdmissionWebhooks({ registry, callers, clock, random, metrics, authorize })
}

function namespaceCreator(registry: Registry): NamespaceCreator {
  return {
    async ensure(name) {
      await registry.writer.ensure(Namespaces, { metadata: { name }, spec: {}, status: {} })
    },
  }
}

function resourcesFor(registry: Registry, kind: GroupVersionKind): readonly OwnerResource[] {
  const found = registry.findKind(kind)?.representation.kind
  if (found === undefined) return []
  const { group, version, plural, namespaced } = found
  return [{ group, version, resource: plural, namespaced }]
}

function aggregatedResources(
  versions: readonly AggregatedVersion[],
  { group, version, kind }: GroupVersionKind,
): readonly OwnerResource[] {
  return versions
    .filter((one) => one.group === group && one.discovery.version === version)
    .flatMap(({ discovery }) => discovery.resources ?? [])
    .filter(({ responseKind }) => responseKind?.kind === kind)
    .map(({ resource, scope }) => ({ group, version, resource, namespaced: scope === 'Namespaced' }))
}
