/** The interface between the Service resource and its allocator of addresses and ports. */
import type { Service } from '#apis/core/v1.ts'
import type { Finish, WriteContext } from '#apiserver/registry/resource.ts'
import type { IpFamily } from '#model/services.ts'

export interface ServiceAllocator {
  /** The family of the first service range, the default of Services. */
  readonly primaryFamily: IpFamily
  /**
   * Sets families, cluster IPs and node ports of `next` and reserves them. Throws StatusError without reserving
   * anything if that fails. The Finish releases unused reservations and never throws.
   */
  allocate(next: Service, old: Service | undefined, context: WriteContext): Promise<Finish>
  /** Releases everything of a deleted Service. Never throws: the repair releases what is left. */
  release(service: Service, context: WriteContext): Promise<void>
}
