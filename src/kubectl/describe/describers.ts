/** The table of describers by kind. A kind without a row is described by all its fields. */
import { AUTOSCALING_KINDS } from './autoscaler.ts'
import { CERTIFICATE_KINDS } from './certificate.ts'
import { CONFIGURATION_KINDS } from './configuration.ts'
import type { DescribedKinds } from './describer.ts'
import { NETWORKING_KINDS } from './networking.ts'
import { NODE_KINDS } from './node.ts'
import { POD_KINDS } from './pods.ts'
import { RBAC_KINDS } from './rbac.ts'
import { STORAGE_KINDS } from './storage.ts'
import { WORKLOAD_KINDS } from './workloads.ts'

export const DESCRIBERS: DescribedKinds = {
  ...POD_KINDS,
  ...NODE_KINDS,
  ...CONFIGURATION_KINDS,
  ...NETWORKING_KINDS,
  ...WORKLOAD_KINDS,
  ...AUTOSCALING_KINDS,
  ...STORAGE_KINDS,
  ...RBAC_KINDS,
  ...CERTIFICATE_KINDS,
}
