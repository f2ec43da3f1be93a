export interface Address {
  town?: string;
  country: string;
}

export interface Person {
  name: string;
  nickname?: string;
  address?: Address;
}
