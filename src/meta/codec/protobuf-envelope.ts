/** `k8s` and a zero byte. */
const MAGIC = 0x6b387300

/** Upstream's kube-apiserver stores protobuf, and so may an existing store. */
export function isProtobufEnvelope(bytes: Buffer): boolean {
  return bytes.length >= 4 && bytes.readUInt32BE(0) === MAGIC
}
