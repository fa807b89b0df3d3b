/**
 * The cloud provider interface, divided as upstream's: instances, load balancers and routes. A provider implements a
 * subset; controllers of missing parts do not run. An external provider is a module with `createProvider`.
 */
import type { LoadBalancerStatus, Node, NodeAddress, Service } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

export interface CloudProvider {
  readonly name: string
  readonly instances?: Instances
  readonly loadBalancer?: LoadBalancer
  readonly routes?: Routes
}

/** Cached cluster objects; they are shared and must not be changed. */
export interface ClusterView {
  get<T extends KubeObject>(kind: Kind<T>, key: string): T | undefined
  list<T extends KubeObject>(kind: Kind<T>): Iterable<T>
}

/** The machines behind nodes. */
export interface Instances {
  exists(node: Node, signal: AbortSignal): Promise<boolean>
  isShutDown(node: Node, signal: AbortSignal): Promise<boolean>
  /** Undefined: not known yet, and the node waits. */
  metadata(node: Node, signal: AbortSignal): Promise<InstanceMetadata | undefined>
}

export interface InstanceMetadata {
  readonly providerId: string
  readonly instanceType?: string
  readonly addresses?: readonly NodeAddress[]
  readonly zone?: string
  readonly region?: string
  /** Additional labels; reserved names and labels that the node already has are skipped. */
  readonly labels?: Readonly<Record<string, string>>
}

export interface BalancerRequest {
  readonly clusterName: string
  readonly service: Service
  readonly view: ClusterView
  readonly signal: AbortSignal
}

export interface LoadBalancer {
  /** `ensure` is cheap: it is called after every change of Services, endpoints or nodes. */
  readonly isFree?: boolean
  /** Undefined: there is none. */
  find(request: BalancerRequest): Promise<LoadBalancerStatus | undefined>
  /** Creates or updates the balancer. Throws ImplementedElsewhere if another component does that. */
  ensure(request: BalancerRequest & { readonly nodes: readonly Node[] }): Promise<LoadBalancerStatus>
  /** Called if only nodes changed. Without it `ensure` is called. Throws like `ensure`. */
  update?(request: BalancerRequest & { readonly nodes: readonly Node[] }): Promise<void>
  /** Does nothing if there is none. */
  remove(request: BalancerRequest): Promise<void>
}

export interface Route {
  /** The cloud's name of the route; for a new route a unique hint. */
  readonly name?: string
  readonly node: string
  readonly addresses: readonly NodeAddress[]
  /** Whether `addresses` are the targets: if the node's addresses differ, the route is recreated. */
  readonly tellsAddresses?: boolean
  readonly destination: string
  /** The target is gone. */
  readonly isBlackhole?: boolean
}

export interface Routes {
  list(clusterName: string, signal: AbortSignal): Promise<readonly Route[]>
  create(clusterName: string, route: Route, signal: AbortSignal): Promise<void>
  remove(clusterName: string, route: Route, signal: AbortSignal): Promise<void>
}

export class ImplementedElsewhere extends Error {}

/** The Service cannot be balanced now; a retry needs a change first. */
export class Refused extends Error {}

export interface ProviderOptions {
  /** The content of the `--cloud-config` file; undefined if there is none. */
  readonly config: string | undefined
}

/** The export `createProvider` of a provider module. */
export type CreateProvider = (options: ProviderOptions) => CloudProvider | Promise<CloudProvider>
