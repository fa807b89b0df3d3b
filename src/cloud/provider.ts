/**
 * What a cloud does for a cluster, as upstream's provider interface divides it: machines, load balancers and routes. A provider has
 * the parts that it can do; loops of those that it has not do not run. Providers of others are modules whose `createProvider` makes one.
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

/** What is known of the cluster; objects are shared and must not be changed. */
export interface ClusterView {
  get<T extends KubeObject>(kind: Kind<T>, key: string): T | undefined
  list<T extends KubeObject>(kind: Kind<T>): Iterable<T>
}

/** The machines behind nodes. */
export interface Instances {
  exists(node: Node, signal: AbortSignal): Promise<boolean>
  isShutDown(node: Node, signal: AbortSignal): Promise<boolean>
  /** Undefined: nothing is known yet, and the node waits. */
  metadata(node: Node, signal: AbortSignal): Promise<InstanceMetadata | undefined>
}

export interface InstanceMetadata {
  readonly providerId: string
  readonly instanceType?: string
  readonly addresses?: readonly NodeAddress[]
  readonly zone?: string
  readonly region?: string
  /** Further ones; those with a name of Kubernetes, or that the node has, are left out. */
  readonly labels?: Readonly<Record<string, string>>
}

export interface BalancerRequest {
  readonly clusterName: string
  readonly service: Service
  readonly view: ClusterView
  readonly signal: AbortSignal
}

export interface LoadBalancer {
  /** It costs nothing to be asked again: it is, whenever anything about Services, their endpoints or nodes changes. */
  readonly isFree?: boolean
  /** Undefined: there is none. */
  find(request: BalancerRequest): Promise<LoadBalancerStatus | undefined>
  /** Makes it, or changes it into what the Service wants on these nodes. Throws ImplementedElsewhere where another does all that. */
  ensure(request: BalancerRequest & { readonly nodes: readonly Node[] }): Promise<LoadBalancerStatus>
  /** Only nodes have changed. Without it `ensure` is asked. Throws as that does. */
  update?(request: BalancerRequest & { readonly nodes: readonly Node[] }): Promise<void>
  /** Harmless when there is none. */
  remove(request: BalancerRequest): Promise<void>
}

export interface Route {
  /** Of the cloud; for one that is to be made a hint, which no two nodes share. */
  readonly name?: string
  readonly node: string
  readonly addresses: readonly NodeAddress[]
  /** `addresses` are what it leads to: when those of the node are others, it is made anew. */
  readonly tellsAddresses?: boolean
  readonly destination: string
  /** It leads nowhere: what it led to is gone. */
  readonly isBlackhole?: boolean
}

export interface Routes {
  list(clusterName: string, signal: AbortSignal): Promise<readonly Route[]>
  create(clusterName: string, route: Route, signal: AbortSignal): Promise<void>
  remove(clusterName: string, route: Route, signal: AbortSignal): Promise<void>
}

export class ImplementedElsewhere extends Error {}

/** A Service cannot be balanced as things are; trying again changes nothing until they do. */
export class Refused extends Error {}

export interface ProviderOptions {
  /** What the file of `--cloud-config` says; undefined: there is none. */
  readonly config: string | undefined
}

/** What a provider's module exports under the name `createProvider`. */
export type CreateProvider = (options: ProviderOptions) => CloudProvider | Promise<CloudProvider>
