/**
 * The API server of a cluster, put together from its parts: which kinds, who may, what is let in. `kube-apiserver` and
 * `up` start the same one with different settings.
 */
import { hostname } from 'node:os'

import { type AdmissionFlags, createAdmission, type PluginSettings } from '#admission/index.ts'
import { createRegistryQuotaWriter } from '#admission/resource-quota/registry-writer.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ServiceCIDR } from '#apis/networking/v1.ts'
import { type ApiServer, type ApiServerParts, startApiServer } from '#apiserver/apiserver.ts'
import {
  type Authenticator,
  type AuthenticatorSettings,
  authenticatorsFor,
  createAuthenticator,
} from '#apiserver/authenticators/index.ts'
import { createLiveObjects } from '#apiserver/authenticators/live-objects.ts'
import { asAuthorize, type Authorizer } from '#apiserver/authorizers/authorizer.ts'
import { type AuthorizerChain, createAuthorizer, createChainAuthorizer } from '#apiserver/authorizers/index.ts'
import { followNodeGraph } from '#apiserver/authorizers/node/follow-node.ts'
import { NodeGraph } from '#apiserver/authorizers/node/graph.ts'
import { createNodeAuthorizer } from '#apiserver/authorizers/node/node.ts'
import { createEscalationChecks } from '#apiserver/authorizers/rbac/escalation.ts'
import { followRbac } from '#apiserver/authorizers/rbac/follow-rbac.ts'
import { RbacIndex } from '#apiserver/authorizers/rbac/rbac.ts'
import type { WebhookAuthorizerOptions } from '#apiserver/authorizers/webhook.ts'
import { ensureApiServices } from '#apiserver/bootstrap/apiservices.ts'
import { type AuthenticationConfig, ensureAuthenticationConfig } from '#apiserver/bootstrap/authentication-config.ts'
import { startDefinitionCleanup } from '#apiserver/bootstrap/definition-cleanup.ts'
import { ensureFlowControl } from '#apiserver/bootstrap/flow-control.ts'
import { startFlowStatus } from '#apiserver/bootstrap/flow-status.ts'
import { ensurePolicy } from '#apiserver/bootstrap/policy.ts'
import { startPublishers } from '#apiserver/bootstrap/publishers.ts'
import { nodeRules } from '#apiserver/bootstrap/roles.ts'
import { ensureSystemObjects } from '#apiserver/bootstrap/system-objects.ts'
import type { KubeletSettings } from '#apiserver/connect/backends.ts'
import { createConnectSubresources } from '#apiserver/connect/connector.ts'
import type { Connectors } from '#apiserver/dispatch.ts'
import { createImpersonation } from '#apiserver/impersonation.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { type Cidr, parseCidr } from '#lib/cidr.ts'
import type { Clock } from '#lib/clock.ts'
import { verifyingKey } from '#lib/jwt/key.ts'
import { createSigner } from '#lib/jwt/token.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import type { Rounds } from '#lib/rounds.ts'
import { parseBundle } from '#lib/x509/certificate.ts'
import { parsePrivateKey } from '#lib/x509/key.ts'
import { isStable } from '#meta/kind.ts'
import { convert } from '#model/conversion/conversion.ts'
import { defineComponentStatus } from '#resources/core/componentstatus.ts'
import { bindPod } from '#resources/core/pod/binding.ts'
import { createEvictionHandler } from '#resources/core/pod/eviction.ts'
import { createAddressBook, serviceRanges } from '#resources/core/service/address-book.ts'
import type { ServiceAllocator } from '#resources/core/service/allocation.ts'
import { createServiceAllocator } from '#resources/core/service/allocator.ts'
import { DEFAULT_PORT_RANGE } from '#resources/core/service/node-ports.ts'
import { createStoredLedger, PORT_ALLOCATIONS } from '#resources/core/service/port-ledger.ts'
import { startServiceRepair } from '#resources/core/service/repair-loop.ts'
import { createServiceAccountTokenHandler } from '#resources/core/serviceaccount-token.ts'
import { createResources } from '#resources/index.ts'
import { createReviews } from '#resources/reviews.ts'
import type { Backend } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'

import { createAskUrl, createComponentProbes } from './component-probes.ts'

/** What a server may do otherwise than by default. */
export interface ServerSettings extends Pick<
  ApiServerParts,
  'filters' | 'metrics' | 'httpLimits' | 'minWatchMs' | 'routes' | 'serverAddress'
> {
  /** Instead of client certificates of `clientAuthorities` and ServiceAccount tokens of `serviceAccountKey`. */
  readonly authentication?: Omit<AuthenticatorSettings, 'clock' | 'objects' | 'apiAudiences'>
  /** Whom tokens must be good for; default: the issuer. */
  readonly apiAudiences?: readonly string[]
  /** For the mode Webhook. */
  readonly authorizationWebhook?: WebhookAuthorizerOptions
  /** Instead of `authorizationModes`. */
  readonly authorizers?: AuthorizerChain
  readonly tokens?: { readonly maxExpirationSeconds: number; readonly extendExpiration: boolean }
  readonly admissionFlags?: AdmissionFlags & PluginSettings
  readonly tolerationSeconds?: { readonly notReadySeconds: number; readonly unreachableSeconds: number }
  /** `--runtime-config`; default: stable versions. */
  readonly isServed?: (kind: Kind) => boolean
  readonly eventTtlMs?: number
  readonly nodePorts?: { readonly first: number; readonly last: number }
  /** How to reach kubelets, for logs, exec and the like. */
  readonly kubelet?: KubeletSettings
  /** What we show aggregated servers and webhooks. */
  readonly proxyClient?: { readonly certificate: string; readonly key: string }
  /** What aggregated servers are told of who is who here; default: the authorities of clients and of front proxies. */
  readonly published?: AuthenticationConfig
  /** PEM of the authority of proxies that say who the user is, by the usual headers; `authentication` has its own way. */
  readonly frontProxyAuthority?: string
  /** Whether the root authority is published and ServiceAccounts are made, as a controller manager would; default: yes. */
  readonly publishes?: boolean
}

export interface ControlPlaneSettings extends ServerSettings {
  readonly backend: Backend
  readonly atRest: AtRest
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** PEM of the authorities that client certificates are checked against. */
  readonly clientAuthorities: string
  /** PEM of the private key that signs ServiceAccount tokens. */
  readonly serviceAccountKey: string
  readonly issuer: string
  readonly serviceCidr: string
  readonly authorizationModes: readonly string[]
  readonly isEnabled: (gate: string) => boolean
  readonly allowPrivileged: boolean
  readonly versionInfo: { readonly gitVersion: string }
}

/** Upstream's own: kubelets are reached by the first address their Node has, and shown nothing. */
const NO_TLS = {}
const DEFAULT_KUBELET: KubeletSettings = {
  tls: () => NO_TLS,
  port: 10_250,
  addressTypes: ['Hostname', 'InternalDNS', 'InternalIP', 'ExternalDNS', 'ExternalIP'],
  timeoutMs: 5_000,
}

export async function startControlPlane(settings: ControlPlaneSettings): Promise<ApiServer> {
  const { isEnabled, log } = settings
  const lazy = createLateRegistry()
  const services = createServices(settings, lazy.get)
  const access = createAccess(settings, lazy.get)
  const { authorizer, authenticator, index, graph } = access
  const connect = createConnectSubresources({
    ...settings,
    kubelet: settings.kubelet ?? DEFAULT_KUBELET,
  })
  return startApiServer({
    ...settings,
    resources: createResources({
      services: services.allocator,
      escalation: createEscalationChecks({ authorizer, index }),
      authorizer,
      ...(settings.eventTtlMs !== undefined && { eventTtlMs: settings.eventTtlMs }),
    }),
    reviews: createReviews({ authorizer, authenticateToken: authenticator.authenticateToken }),
    virtuals: [defineComponentStatus(createComponentProbes({ ...settings, ask: createAskUrl(settings.clock) }))],
    connectors: { ...createConnectors(settings, access, lazy.get), ...connect.connectors },
    admission: createAdmission({
      ...settings,
      authorize: (user, question) => authorizer.authorize(user, question),
      quotas: createRegistryQuotaWriter(lazy.get),
      ...settings.admissionFlags,
    }),
    convert,
    authenticate(registry) {
      lazy.set(registry)
      followRbac(registry, index)
      followNodeGraph(registry, graph)
      return authenticator.authenticate
    },
    authorize: () => asAuthorize(authorizer),
    impersonate: createImpersonation({ authorizer, isConstrained: isEnabled('ConstrainedImpersonation') }),
    isServed:
      settings.isServed ?? (({ version, gate }: Kind) => isStable(version) && (gate === undefined || isEnabled(gate))),
    bootstrap(registry, closing) {
      closing.defer(() => connect.close())
      return bootstrap(registry, closing, { ...settings, services })
    },
    onError: (error, info) => log.error(error, 'Request failed', { verb: info.verb, path: info.path }),
  })
}

/** What must be there, and what keeps it there, in the order in which the ones need the others. */
async function bootstrap(
  registry: Registry,
  closing: AsyncDisposableStack,
  settings: ControlPlaneSettings & { readonly services: ServiceParts },
): Promise<void> {
  const { isEnabled, log, clientAuthorities, frontProxyAuthority: authorities, published } = settings
  const requestHeader = authorities === undefined ? {} : { requestHeader: { ...FRONT_PROXY, authorities } }
  await ensureSystemObjects(registry)
  // What comes together is written together.
  await Promise.all([ensurePolicy(registry, isEnabled), ensureFlowControl(registry), ensureApiServices(registry)])
  const flows = startFlowStatus(registry, (error) => log.error(error, 'Saying what flow schemas lack failed'))
  closing.defer(() => flows?.close())
  const cleanup = startDefinitionCleanup(registry, (error) => log.error(error, 'Cleaning up a definition failed'))
  closing.defer(() => cleanup?.close())
  const repair = await settings.services.startRepair(registry)
  closing.defer(() => repair.stop())
  await ensureAuthenticationConfig(registry, published ?? { clientAuthorities, ...requestHeader })
  if (settings.publishes === false) return
  const publishers = startPublishers(registry, {
    rootCa: clientAuthorities,
    onError: (error) => log.error(error, 'Publishing failed'),
  })
  closing.defer(() => publishers.close())
}

interface Access {
  readonly authenticator: Authenticator
  readonly authorizer: Authorizer
  readonly index: RbacIndex
  readonly graph: NodeGraph
  readonly apiAudiences: readonly string[]
}

/** Who is who, and who may what. */
function createAccess(settings: ControlPlaneSettings, registry: () => Registry): Access {
  const { clock, log, isEnabled, authorizationWebhook, apiAudiences = [settings.issuer] } = settings
  const index = new RbacIndex()
  const graph = new NodeGraph()
  const node = createNodeAuthorizer({ graph, rules: nodeRules(isEnabled), isEnabled })
  const parts = { rbac: index, node }
  const authorizer =
    settings.authorizers === undefined
      ? createAuthorizer(settings.authorizationModes, {
          ...parts,
          ...(authorizationWebhook === undefined ? {} : { webhook: authorizationWebhook }),
        })
      : createChainAuthorizer(settings.authorizers, parts)
  const objects = createLiveObjects({ storeOf: (kind) => registry().storeOf(kind) })
  const authentication = settings.authentication ?? defaultAuthentication(settings)
  const authenticators = authenticatorsFor({ clock, objects, apiAudiences, ...authentication })
  const onRefusal = (why: string): void => log.v(2)?.info('Unable to authenticate the request', { err: why })
  const authenticator = createAuthenticator({ ...authenticators, onRefusal })
  return { authenticator, authorizer, index, graph, apiAudiences }
}

interface ServiceParts {
  readonly allocator: ServiceAllocator
  /** Resolves when Services can be given node ports. */
  startRepair(registry: Registry): Promise<Rounds>
}

/** Addresses and ports of Services. */
function createServices(settings: ControlPlaneSettings, registry: () => Registry): ServiceParts {
  const { backend, atRest, random, log, nodePorts: portRange = DEFAULT_PORT_RANGE } = settings
  const parts = {
    book: createAddressBook(registry),
    ports: createStoredLedger({ backend, resting: atRest.resting(PORT_ALLOCATIONS), range: portRange }),
    serviceCidrs: cidrsOf(settings.serviceCidr),
    portRange,
  }
  const rangeObjects = (): readonly ServiceCIDR[] => serviceRanges(registry)
  const report = (message: string, error: unknown): void => log.error(error, message)
  return {
    allocator: createServiceAllocator({ ...parts, random, rangeObjects, report }),
    startRepair: (known) =>
      startServiceRepair({
        ...parts,
        registry: known,
        hostname: hostname(),
        onError: (error) => log.error(error, 'Repairing what Services hold failed'),
      }),
  }
}

function createConnectors(
  { issuer, serviceAccountKey, tokens }: ControlPlaneSettings,
  { apiAudiences }: Access,
  registry: () => Registry,
): Connectors {
  const signer = createSigner(parsePrivateKey(serviceAccountKey))
  return {
    'pods/binding': { create: bindPod },
    'pods/eviction': { create: createEvictionHandler(registry) },
    'serviceaccounts/token': {
      create: createServiceAccountTokenHandler({ signer, issuer, apiAudiences, ...tokens }),
    },
  }
}

/** The registry needs the allocators, and they need the registry; it is there before anybody asks for it. */
function createLateRegistry(): { readonly get: () => Registry; readonly set: (registry: Registry) => void } {
  let known: Registry | undefined
  return {
    get() {
      if (known === undefined) throw new Error('The registry is not there yet')
      return known
    },
    set(registry) {
      known = registry
    },
  }
}

/** Client certificates and ServiceAccount tokens, with authorities and keys that stay what they are. */
/** How proxies in front of us tell who the user is, as kubeadm sets it. */
const FRONT_PROXY = {
  allowedNames: ['front-proxy-client'],
  usernameHeaders: ['X-Remote-User'],
  uidHeaders: ['X-Remote-Uid'],
  groupHeaders: ['X-Remote-Group'],
  extraHeaderPrefixes: ['X-Remote-Extra-'],
}

function defaultAuthentication({
  clientAuthorities,
  frontProxyAuthority,
  serviceAccountKey,
  issuer,
}: ControlPlaneSettings): Pick<AuthenticatorSettings, 'clientCert' | 'serviceAccounts' | 'requestHeader'> {
  const authorities = parseBundle(clientAuthorities)
  const proxies = frontProxyAuthority === undefined ? undefined : parseBundle(frontProxyAuthority)
  const keys = [verifyingKey(parsePrivateKey(serviceAccountKey))]
  return {
    ...(proxies && { requestHeader: { ...FRONT_PROXY, authorities: () => proxies } }),
    clientCert: { authorities: () => authorities },
    serviceAccounts: { issuers: [issuer], keys: () => keys },
  }
}

function cidrsOf(text: string): readonly Cidr[] {
  return text.split(',').flatMap((one) => parseCidr(one) ?? [])
}
